// The implementation of Boost.JSON, compiled once; only json.cpp includes its headers.
#include <boost/json/src.hpp>
