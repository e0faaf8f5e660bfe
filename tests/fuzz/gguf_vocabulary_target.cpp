#include "fuzz/gguf_seeds.h"
#include "fuzz/material.h"
#include "fuzz/targets.h"
#include "model/config.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/vocab_check.h"
#include "text/control_tokens.h"
#include "text/tokenizer.h"

namespace knap::fuzz::gguf_vocabulary_target_parts {
namespace {

constexpr std::string_view kText =
    "Hello <s> w\xc3\xb6rld\n\t<|im_end|> 12  he \xff\xe2\x96\x81 t1 t23 ";

void use(const Tokenizer& tokenizer) {
    const ControlTokens controls(tokenizer);
    controls.find(kText);
    tokenizer.begin_of_sequence();
    tokenizer.end_of_sequence();
    for (const bool is_special : {false, true}) {
        is_accepted([&] { tokenizer.decode(tokenizer.encode(kText, is_special, is_special)); });
    }
    is_accepted([&] { tokenizer.encode_inside(kText); });
}

// libllama reads what the engine lets it read.
void run(std::string_view input) {
    const InputFile bytes(input);
    is_accepted([&] {
        {
            const GgufFile file = GgufFile::open(bytes.path());
            check_vocabulary(file);
            read_config(file);
        }
        use(*Tokenizer::load(bytes.path()));
    });
}

std::vector<std::string> seeds() {
    std::vector<std::string> all = vocabularies();
    all.push_back(tiny_models().front());
    for (std::string& header : model_headers()) {
        all.push_back(std::move(header));
    }
    return all;
}

}  // namespace
}  // namespace knap::fuzz::gguf_vocabulary_target_parts

knap::fuzz::Target knap::fuzz::gguf_vocabulary_target() {
    using namespace gguf_vocabulary_target_parts;
    return {.name = "gguf_vocabulary",
            .run = run,
            .seeds = seeds,
            .max_bytes = 16'384,
            .word_sources = {"src/model/gguf/vocab_check.cpp", "src/model/config.cpp",
                             "tests/model/gguf"}};
}
