// Linked with -ffast-math: the linker adds a constructor that flushes denormal numbers to zero.
extern "C" int lamella_fast_math_library() { return 0; }
