/// Filters that make texts of texts.
#pragma once

#include "model/jinja/builtins.hpp"

namespace lamella::model::jinja {

value filter_title(environment& e, const value& x, arguments& args);
value filter_trim(environment& e, const value& x, arguments& args);
value filter_replace(environment& e, const value& x, arguments& args);
value filter_indent(environment& e, const value& x, arguments& args);
value filter_escape(environment& e, const value& x, arguments& args);
value filter_forceescape(environment& e, const value& x, arguments& args);
value filter_safe(environment& e, const value& x, arguments& args);
value filter_format(environment& e, const value& x, arguments& args);
value filter_center(environment& e, const value& x, arguments& args);
value filter_truncate(environment& e, const value& x, arguments& args);
value filter_wordcount(environment& e, const value& x, arguments& args);
value filter_urlencode(environment& e, const value& x, arguments& args);
value filter_xmlattr(environment& e, const value& x, arguments& args);
value filter_pprint(environment& e, const value& x, arguments& args);

/// What str() makes of it through a change of its letters.
value mapped_text(environment& e, const value& x, std::string (*f)(std::string_view));

} // namespace lamella::model::jinja
