/// Opens the tables and traces that simulations read: plain, gzip or xz.
#pragma once

#include "scheduler/planner/cost/csv.hpp"
#include "scheduler/planner/cost/hardware.hpp"
#include "scheduler/planner/cost/profile.hpp"
#include "scheduler/planner/cost/trace.hpp"

#include <functional>
#include <istream>
#include <string>

namespace lamella::cli {

/// Calls `read` with the decompressed file, told by its first bytes, not by its name. Throws
/// command_error: 66 when it cannot be opened, 65 when it is damaged, is no table (`read` threw
/// table_error), or grows beyond 1 GiB.
void read_data_file(const std::string& path, const std::function<void(std::istream&)>& read);

/// The file `name` of the data that comes with the program: in $LAMELLA_DATA_DIR, in
/// share/lamella/data beside the program's folder, or where it was built. Throws command_error.
std::string shipped_data(const std::string& name);

/// A trace by path, by the name of one that comes with the program (azure_conv_2023), or one that
/// is drawn (uniform:REQUESTS,PROMPT,OUTPUT). Throws command_error, with the nearest name.
scheduler::request_trace load_trace(const std::string& name_or_path);

/// Splitwise's table of measurements, which comes with the program.
std::vector<scheduler::profile_row> load_profile();

/// The built-in table, or that of a file where `path` is not empty.
std::vector<scheduler::device> load_devices(const std::string& path);
std::vector<scheduler::model_shape> load_models(const std::string& path);

/// The row of that name. Throws command_error 2 with the nearest name and `flag`.
const scheduler::device& device_named(const std::vector<scheduler::device>& all,
                                      const std::string& name, const char* flag);
const scheduler::model_shape& model_named(const std::vector<scheduler::model_shape>& all,
                                          const std::string& name);

} // namespace lamella::cli
