// The main function of a benchmark: turns an error into one line and exit code 1.
#pragma once

#include <cstdio>
#include <exception>

namespace knap::bench {

template <typename Run>
int bench_main(const char* name, Run run) {
    try {
        run();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: error: %s\n", name, error.what());
        return 1;
    }
    return 0;
}

}  // namespace knap::bench
