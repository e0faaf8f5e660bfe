#include "fuzz/gguf_seeds.h"
#include "fuzz/targets.h"
#include "model/adapter.h"
#include "support/loaded_model.h"
#include "support/tiny_adapter.h"
#include "support/tiny_model.h"

namespace knap::fuzz::gguf_adapter_target_parts {
namespace {

void run(std::string_view input) {
    static test::LoadedModel model(tiny_model("tiny-llama", "Q8_0"));
    const InputFile bytes(input);
    is_accepted([&] {
        const Adapter adapter(bytes.path(), model.config, *model.weights, model.backend, {});
        expect(adapter.exit_layer() >= 1 && adapter.exit_layer() < model.config.n_layers,
               "an adapter stands inside its model");
        expect(adapter.n_parameters() > 0 && adapter.n_bytes() > 0, "an adapter has weights");
    });
}

std::vector<std::string> seeds() {
    std::vector<std::string> all;
    for (const ggml_type type : {GGML_TYPE_Q4_0, GGML_TYPE_Q8_0}) {
        all.push_back(bytes_of(test::write_tiny(test::tiny_adapter({.type = type}), "seed.gguf")));
    }
    return all;
}

}  // namespace
}  // namespace knap::fuzz::gguf_adapter_target_parts

knap::fuzz::Target knap::fuzz::gguf_adapter_target() {
    using namespace gguf_adapter_target_parts;
    return {.name = "gguf_adapter",
            .run = run,
            .seeds = seeds,
            .max_bytes = 20'000,
            .word_sources = {"src/model/adapter.cpp", "src/model/config.cpp",
                             "src/model/architectures/kangaroo.cpp", "src/model/tensor_table.cpp"}};
}
