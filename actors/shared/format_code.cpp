#include "actors/shared/format_code.hpp"

LAMELLA_FORMAT_CODE()
