#include "cli/app.hpp"

int main(int argc, char** argv) { return lamella::cli::run(argc, argv); }
