// Selects the kernels of an operator that may run on this machine.
#pragma once

#include <initializer_list>
#include <vector>

#include "kernels/isa.h"

namespace knap {

// Keeps the kernels whose instruction set may be used, in the given order of preference.
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
