// The implementations of Boost.Asio and Boost.Beast, compiled once (see *_SEPARATE_COMPILATION in
// CMakeLists.txt).
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
