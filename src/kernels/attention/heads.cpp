#include "kernels/attention/heads.h"

#include <vector>

#include "kernels/attention/heads_variants.h"
#include "kernels/usable_kernels.h"

namespace knap {
std::span<const HeadsKernel> heads_kernels() {
    static const std::vector<HeadsKernel> kernels = usable_kernels<HeadsKernel>({
#if defined(__x86_64__)
        &kAvx512Heads, &kAvx2Heads,
#elif defined(__aarch64__)
        &kNeonHeads,
#endif
            &kPlainHeads,
    });
    return kernels;
}

}  // namespace knap
