// An operator's kernels that may run here.
#pragma once

#include <initializer_list>
#include <vector>

#include "kernels/isa.h"

namespace knap {

// Of kernels in the order of preference, those whose instruction set may be used.
template <typename Kernel>
std::vector<Kernel> usable_kernels(std::initializer_list<const Kernel*> all) {
    std::vector<Kernel> usable;
    for (const Kernel* kernel : all) {
        if (may_use(kernel->isa)) {
            usable.push_back(*kernel);
        }
    }
    return usable;
}

}  // namespace knap
