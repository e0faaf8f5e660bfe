// GLM-4-0414: norms before and after modules, heads that rotate in part, gate and up in one matrix.
#include <utility>

#include "model/architectures/architecture.h"

namespace knap {

Architecture arch_glm4() {
    TensorTable tensors = dense_decoder_tensors();
    add_post_norms(tensors);
    fuse_gate_and_up(tensors);
    return {.name = "glm4",
            .rope_pairing = RopePairing::neighbours,
            .tensors = std::move(tensors),
            .fields = {kPartialRotation}};
}

}  // namespace knap
