#include <span>

#include "cli/cli.h"
#include "cli/environment.h"

int main(int argc, char** argv) {
    const std::span words(argv, static_cast<std::size_t>(argc));
    return knap::run_cli({words.begin() + (argc > 0 ? 1 : 0), words.end()},
                         knap::read_environment());
}
