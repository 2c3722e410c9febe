#include "actors/protocol/format_code.hpp"

LAMELLA_FORMAT_CODE()
