#include "fuzz/gguf_seeds.h"

#include <algorithm>
#include <filesystem>

#include "ggml-cpp.h"
#include "gguf.h"

#include "fuzz/material.h"
#include "fuzz/target.h"
#include "support/tiny_gguf.h"
#include "support/tiny_model.h"
#include "text/chat_models.h"

namespace knap::fuzz {
namespace {

namespace fs = std::filesystem;

// Of a vocabulary, so that a header has a few kilobytes.
constexpr std::size_t kMostTokens = 300;

std::string header_of(const fs::path& path) {
    const gguf_context_ptr file(
        gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
    const gguf_context_ptr header(gguf_init_empty());
    gguf_set_kv(header.get(), file.get());
    const auto id = gguf_find_key(header.get(), "tokenizer.ggml.tokens");
    const std::size_t n_tokens = id < 0 ? 0 : gguf_get_arr_n(header.get(), id);
    if (n_tokens > kMostTokens) {
        std::vector<std::string> tokens;
        std::vector<const char*> texts;
        for (std::size_t i = 0; i < kMostTokens; ++i) {
            tokens.emplace_back(gguf_get_arr_str(file.get(), id, i));
        }
        for (const std::string& token : tokens) {
            texts.push_back(token.c_str());
        }
        gguf_set_arr_str(header.get(), "tokenizer.ggml.tokens", texts.data(), texts.size());
        gguf_remove_key(header.get(), "tokenizer.ggml.token_type");
        gguf_remove_key(header.get(), "tokenizer.ggml.scores");
    }
    const fs::path copy = temporary_folder() / "header.gguf";
    gguf_write_to_file(header.get(), copy.c_str(), /*only_meta=*/true);
    return bytes_of(copy);
}

std::string bytes_of(const test::TinyGguf& file) {
    return fuzz::bytes_of(test::write_tiny(file, "seed.gguf"));
}

}  // namespace

std::vector<std::string> tiny_models() {
    std::vector<std::string> all;
    const test::TinySizes small{
        .n_layers = 1, .n_embd = 32, .n_heads = 4, .n_kv_heads = 2, .n_ff = 32};
    for (const char* architecture : {"llama", "qwen2", "qwen3", "granite", "smollm3"}) {
        all.push_back(bytes_of(test::TinyGguf(architecture, small, GGML_TYPE_Q4_0)));
    }
    for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_1,
                                 GGML_TYPE_Q5_0, GGML_TYPE_IQ4_NL, GGML_TYPE_MXFP4}) {
        all.push_back(bytes_of(test::TinyGguf("llama", small, type)));
    }
    test::TinyGguf tied("llama", small, GGML_TYPE_Q4_0);
    tied.remove_tensor("output.weight");
    all.push_back(bytes_of(tied));
    return all;
}

std::vector<std::string> model_headers() {
    std::vector<std::string> all;
    for (const char* shape : shapes_named("tiny-")) {
        all.push_back(header_of(tiny_model(shape, "F32")));
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(in_repository("models"))) {
        if (entry.path().extension() == ".gguf") {
            all.push_back(header_of(entry.path()));
        }
    }
    return all;
}

std::vector<std::string> vocabularies() {
    std::vector<std::string> all;
    for (test::TinyVocabulary vocabulary : {test::bpe_vocabulary(), test::spm_vocabulary(),
                                            test::chat_vocabulary("{{ messages }}")}) {
        // As few tokens as make a model that can be read.
        test::TinyGguf file("llama", {.n_layers = 1, .n_embd = 32, .n_heads = 4}, GGML_TYPE_Q4_0);
        file.tensors().clear();
        test::write_metadata(file.metadata(), vocabulary);
        all.push_back(bytes_of(file));
    }
    return all;
}

}  // namespace knap::fuzz
