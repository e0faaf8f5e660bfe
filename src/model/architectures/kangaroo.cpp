// Kangaroo's adapter: only attention, then the norm before the model's head.
#include "model/architectures/architecture.h"

namespace knap {

Architecture arch_kangaroo() {
    return {"kangaroo",
            RopePairing::halves,
            {.of_model = {{"output_norm.weight",
                           &ModelTensors::output_norm,
                           {Size::n_embd},
                           Presence::required}},
             .of_layer = attention_tensors()}};
}

}  // namespace knap
