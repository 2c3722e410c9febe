/// Filters that go over several values.
#pragma once

#include "model/jinja/builtins.hpp"

namespace lamella::model::jinja {

value filter_first(environment& e, const value& x, arguments& args);
value filter_last(environment& e, const value& x, arguments& args);
value filter_list(environment& e, const value& x, arguments& args);
value filter_items(environment& e, const value& x, arguments& args);
value filter_join(environment& e, const value& x, arguments& args);
value filter_reverse(environment& e, const value& x, arguments& args);
value filter_sort(environment& e, const value& x, arguments& args);
value filter_unique(environment& e, const value& x, arguments& args);
value filter_dictsort(environment& e, const value& x, arguments& args);
value filter_min(environment& e, const value& x, arguments& args);
value filter_max(environment& e, const value& x, arguments& args);
value filter_sum(environment& e, const value& x, arguments& args);
value filter_map(environment& e, const value& x, arguments& args);
value filter_select(environment& e, const value& x, arguments& args);
value filter_reject(environment& e, const value& x, arguments& args);
value filter_selectattr(environment& e, const value& x, arguments& args);
value filter_rejectattr(environment& e, const value& x, arguments& args);
value filter_batch(environment& e, const value& x, arguments& args);
value filter_slice(environment& e, const value& x, arguments& args);
value filter_groupby(environment& e, const value& x, arguments& args);

} // namespace lamella::model::jinja
