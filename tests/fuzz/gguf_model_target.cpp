#include "device/backend.h"
#include "forward/plan_cost.h"
#include "fuzz/gguf_seeds.h"
#include "fuzz/material.h"
#include "fuzz/targets.h"
#include "model/architectures/layer_text.h"
#include "model/fingerprint.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/vocab_check.h"
#include "model/layer_classes.h"
#include "model/row_invariance.h"
#include "model/weights.h"

namespace knap::fuzz::gguf_model_target_parts {
namespace {

// All that is done with a file before libllama reads its vocabulary and passes compute with it.
void load(const GgufFile& file) {
    static Backend backend(1);
    const ModelConfig config = read_config(file);
    describe_layers(config);
    if (config.temperature.scale != 0) {
        query_scale(config.temperature, config.n_ctx_train - 1);
    }
    for (const Kernels kernels : {Kernels::own, Kernels::ggml}) {
        is_accepted([&] {
            const auto weights = Weights::load(
                file, config, backend, {.repack = Repack::automatic, .kernels = kernels}, {});
            expect(weights->tensors().output != nullptr, "a model has a head");
            model_cost(config, *weights, 64);
            classify_layers(*weights);
            row_invariant_rows(*weights);
        });
    }
    fingerprint(file, "");
}

void run(std::string_view input) {
    const InputFile bytes(input);
    is_accepted([&] {
        const GgufFile file = GgufFile::open(bytes.path());
        for (const TensorInfo& tensor : file.tensors()) {
            const auto all = file.mappings()[tensor.part];
            expect(tensor.offset <= all.size() && tensor.n_bytes <= all.size() - tensor.offset,
                   "all data of a tensor is inside the file");
        }
        is_accepted([&] { check_vocabulary(file); });
        load(file);
    });
}

std::vector<std::string> seeds() {
    std::vector<std::string> all = tiny_models();
    for (std::string& header : model_headers()) {
        all.push_back(std::move(header));
    }
    return all;
}

}  // namespace
}  // namespace knap::fuzz::gguf_model_target_parts

knap::fuzz::Target knap::fuzz::gguf_model_target() {
    using namespace gguf_model_target_parts;
    return {.name = "gguf_model",
            .run = run,
            .seeds = seeds,
            .max_bytes = 20'000,
            .word_sources = {"src/model/config.cpp", "src/model/rope_config.cpp",
                             "src/model/tensor_table.cpp", "src/model/architectures",
                             "src/model/gguf"}};
}
