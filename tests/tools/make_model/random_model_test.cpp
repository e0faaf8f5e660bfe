#include "tools/make_model/random_model.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "ggml-cpp.h"
#include "gguf.h"
#include "llama-cpp.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/error.h"
#include "base/text.h"
#include "support/tiny_model.h"
#include "tools/make_model/shapes.h"

namespace knap::random_model_test {
namespace {

namespace fs = std::filesystem;

std::string read_bytes(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

fs::path write_model(const RandomModelOptions& options, const std::string& name) {
    const fs::path path = temporary_folder() / name;
    write_random_model(options, path);
    return path;
}

RandomModelOptions model_options(std::string shape, std::string type) {
    RandomModelOptions options;
    options.shape = std::move(shape);
    options.type = std::move(type);
    return options;
}

// The message of the error that `options` cause; empty when there is none.
std::string error_of(const RandomModelOptions& options, const fs::path& path) {
    try {
        write_random_model(options, path);
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

std::string error_of(const RandomModelOptions& options) {
    return error_of(options, temporary_folder() / "refused.gguf");
}

// A written model as ggml reads it back, data included.
struct Contents {
    gguf_context_ptr gguf;
    ggml_context_ptr tensors;

    explicit Contents(const fs::path& path) {
        ggml_context* context = nullptr;
        gguf.reset(gguf_init_from_file(path.c_str(), {.no_alloc = false, .ctx = &context}));
        tensors.reset(context);
    }
    const ggml_tensor* tensor(const std::string& name) const {
        return ggml_get_tensor(tensors.get(), name.c_str());
    }
    std::vector<float> values(const std::string& name) const {
        const auto* data = static_cast<const float*>(tensor(name)->data);
        return {data, data + ggml_nelements(tensor(name))};
    }
    std::uint32_t integer(const char* key) const {
        const auto id = gguf_find_key(gguf.get(), key);
        return id < 0 ? 0 : gguf_get_val_u32(gguf.get(), id);
    }
};

struct Moments {
    double mean;
    double deviation;
};

Moments moments(const std::vector<float>& values) {
    double sum = 0;
    double squares = 0;
    for (const float value : values) {
        sum += value;
        squares += double(value) * value;
    }
    const double mean = sum / double(values.size());
    return {mean, std::sqrt(squares / double(values.size()) - mean * mean)};
}

// --- libllama as the reference ---

std::string& llama_complaints() {
    static std::string complaints;
    return complaints;
}

void collect_complaint(ggml_log_level level, const char* text, void*) {
    if (level == GGML_LOG_LEVEL_WARN || level == GGML_LOG_LEVEL_ERROR) {
        llama_complaints() += text;
    }
}

llama_model_ptr load_llama(const fs::path& path, bool vocab_only = false) {
    llama_complaints().clear();
    llama_log_set(collect_complaint, nullptr);
    llama_model_params params = llama_model_default_params();
    params.vocab_only = vocab_only;
    return llama_model_ptr(llama_model_load_from_file(path.c_str(), params));
}

std::vector<llama_token> tokenize(const llama_vocab* vocab,
                                  const std::string& text,
                                  bool parse_special = false) {
    std::vector<llama_token> tokens(text.size() + 8);
    const int n =
        llama_tokenize(vocab, text.data(), int(text.size()), tokens.data(), int(tokens.size()),
                       /*add_special=*/false, parse_special);
    tokens.resize(std::max(n, 0));
    return tokens;
}

std::string piece_of(const llama_vocab* vocab, llama_token token) {
    char piece[64];
    const int n =
        llama_token_to_piece(vocab, token, piece, sizeof piece, /*lstrip=*/0, /*special=*/true);
    return {piece, std::size_t(std::max(n, 0))};
}

std::string text_of(const llama_vocab* vocab, const std::vector<llama_token>& tokens) {
    std::string text;
    for (const llama_token token : tokens) {
        text += piece_of(vocab, token);
    }
    return text;
}

// The logits after `tokens`.
std::vector<float> decode(llama_model* model, std::vector<llama_token> tokens) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 64;
    params.n_threads = params.n_threads_batch = 1;
    const llama_context_ptr context(llama_init_from_model(model, params));
    if (llama_decode(context.get(), llama_batch_get_one(tokens.data(), int(tokens.size()))) != 0) {
        return {};
    }
    const float* logits = llama_get_logits_ith(context.get(), -1);
    return {logits, logits + llama_vocab_n_tokens(llama_model_get_vocab(model))};
}

// --- every shape and type loads ---

struct ShapeAndType {
    std::string shape;
    std::string type;
};

void PrintTo(const ShapeAndType& pair, std::ostream* out) {
    *out << pair.shape << " " << pair.type;
}

std::string test_name(const testing::TestParamInfo<ShapeAndType>& info) {
    std::string name = info.param.shape + "_" + info.param.type;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

std::vector<ShapeAndType> pairs(const std::vector<std::string>& shapes,
                                const std::vector<std::string>& types) {
    std::vector<ShapeAndType> all;
    for (const auto& shape : shapes) {
        for (const auto& type : types) {
            all.push_back({shape, type});
        }
    }
    return all;
}

const std::vector<std::string> kTinyShapes = {"tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-mha"};
const std::vector<std::string> kSmallBlockTypes = {"F32",  "F16",  "BF16", "Q4_0",   "Q4_1",
                                                   "Q5_0", "Q5_1", "Q8_0", "IQ4_NL", "MXFP4"};
const std::vector<std::string> kLargeBlockTypes = {"Q2_K", "Q3_K", "Q4_K",  "Q4_K_M",
                                                   "Q5_K", "Q6_K", "IQ4_XS"};

class EveryRandomModel : public testing::TestWithParam<ShapeAndType> {};

TEST_P(EveryRandomModel, DecodesInLibllama) {
    const auto model = load_llama(tiny_model(GetParam().shape, GetParam().type));
    ASSERT_NE(model, nullptr) << llama_complaints();
    const auto logits = decode(model.get(), {72, 101, 108, 108, 111});
    const ModelShape& shape = find_shape(GetParam().shape);
    ASSERT_EQ(std::ssize(logits), shape.n_vocab);
    for (const float logit : logits) {
        ASSERT_TRUE(std::isfinite(logit));
    }
    // Head rows of variance 1 / n_embd and a normalised state give logits of about unit size.
    EXPECT_NEAR(moments(logits).deviation, 1.0, 0.4);
    // libllama guesses a file's type from its matrices, but has no guess for plain MXFP4.
    const bool has_no_guess = GetParam().type == "MXFP4";
    EXPECT_EQ(llama_complaints(), has_no_guess ? "llama_model_loader: unknown type mxfp4\n" : "");
}

INSTANTIATE_TEST_SUITE_P(Tiny,
                         EveryRandomModel,
                         testing::ValuesIn(pairs(kTinyShapes, kSmallBlockTypes)),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Small,
                         EveryRandomModel,
                         testing::ValuesIn(pairs({"small-llama", "small-qwen3"}, kLargeBlockTypes)),
                         test_name);

TEST(RandomModel, TinyModelsStayUnderAMegabyte) {
    for (const auto& [shape, type] : pairs(kTinyShapes, kSmallBlockTypes)) {
        EXPECT_LT(fs::file_size(tiny_model(shape, type)), 1'000'000u) << shape << " " << type;
    }
}

// --- the options determine the bytes ---

TEST(RandomModel, SameSeedGivesSameBytes) {
    const auto options = model_options("tiny-qwen3", "Q4_0");
    EXPECT_EQ(read_bytes(write_model(options, "once.gguf")),
              read_bytes(write_model(options, "twice.gguf")));
}

TEST(RandomModel, OtherSeedGivesOtherWeights) {
    const Contents a(tiny_model("tiny-llama", "F32", 1));
    const Contents b(tiny_model("tiny-llama", "F32", 2));
    for (const char* name :
         {"token_embd.weight", "blk.3.ffn_down.weight", "blk.0.attn_norm.weight"}) {
        EXPECT_NE(a.values(name), b.values(name)) << name;
    }
}

TEST(RandomModel, FewerLayersAreTheFirstOnes) {
    auto options = model_options("tiny-llama", "F32");
    options.n_layers = 2;
    const Contents two(write_model(options, "two_layers.gguf"));
    const Contents four(tiny_model("tiny-llama", "F32"));
    EXPECT_EQ(two.integer("llama.block_count"), 2u);
    EXPECT_EQ(two.tensor("blk.2.attn_norm.weight"), nullptr);
    EXPECT_EQ(two.values("blk.1.ffn_up.weight"), four.values("blk.1.ffn_up.weight"));
    EXPECT_NE(two.values("blk.0.ffn_up.weight"), two.values("blk.1.ffn_up.weight"));
}

TEST(RandomModel, WeightsHaveTheVarianceThatKeepsActivationsInBounds) {
    const Contents model(tiny_model("tiny-qwen2", "F32"));
    const Moments gate = moments(model.values("blk.0.ffn_gate.weight"));
    EXPECT_NEAR(gate.mean, 0.0, 0.01);
    EXPECT_NEAR(gate.deviation, 1 / std::sqrt(64.0), 0.01);
    EXPECT_NEAR(moments(model.values("blk.0.ffn_down.weight")).deviation, 1 / std::sqrt(128.0),
                0.01);
    EXPECT_NEAR(moments(model.values("output_norm.weight")).mean, 1.0, 0.05);
    EXPECT_NEAR(moments(model.values("blk.2.attn_q.bias")).mean, 0.0, 0.05);
}

// --- metadata and types ---

TEST(RandomModel, StatesTheHeadSizeWhenItIsNotImplied) {
    const Contents wide(tiny_model("small-qwen3", "Q8_0"));
    EXPECT_EQ(wide.integer("qwen3.attention.key_length"), 128u);
    EXPECT_EQ(wide.integer("qwen3.attention.value_length"), 128u);
    EXPECT_EQ(wide.tensor("blk.0.attn_q.weight")->ne[1], 512);
    const Contents plain(tiny_model("tiny-llama", "F32"));
    EXPECT_EQ(plain.integer("llama.attention.key_length"), 0u);
}

TEST(RandomModel, MixtureBoostsHalfOfTheSensitiveMatricesAndTheHead) {
    auto options = model_options("small-llama", "q4_k_m");
    options.n_layers = 16;
    const Contents model(write_model(options, "mixture.gguf"));
    int n_boosted = 0;
    for (int layer = 0; layer < 16; ++layer) {
        const auto type = model.tensor(concat("blk.", layer, ".ffn_down.weight"))->type;
        EXPECT_EQ(type, model.tensor(concat("blk.", layer, ".attn_v.weight"))->type);
        EXPECT_EQ(model.tensor(concat("blk.", layer, ".attn_q.weight"))->type, GGML_TYPE_Q4_K);
        n_boosted += type == GGML_TYPE_Q6_K;
    }
    EXPECT_EQ(n_boosted, 8);
    EXPECT_EQ(model.tensor("output.weight")->type, GGML_TYPE_Q6_K);
    EXPECT_EQ(model.tensor("token_embd.weight")->type, GGML_TYPE_Q4_K);
}

TEST(RandomModel, ExpertsHaveATypeOfTheirOwnAsInPublishedFiles) {
    const Contents model(tiny_model("tiny-gpt-oss", "MXFP4_MOE"));
    for (const char* name : {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"}) {
        EXPECT_EQ(model.tensor(concat("blk.1.", name, ".weight"))->type, GGML_TYPE_MXFP4) << name;
        EXPECT_EQ(model.tensor(concat("blk.1.", name, ".bias"))->type, GGML_TYPE_F32) << name;
    }
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
        EXPECT_EQ(model.tensor(concat("blk.1.", name, ".weight"))->type, GGML_TYPE_Q8_0) << name;
    }
    EXPECT_EQ(model.tensor("token_embd.weight")->type, GGML_TYPE_Q8_0);
    EXPECT_EQ(model.tensor("output.weight")->type, GGML_TYPE_Q8_0);
    EXPECT_EQ(model.tensor("blk.1.ffn_gate_inp.weight")->type, GGML_TYPE_F32);
    EXPECT_EQ(model.integer("general.file_type"), 38u);
}

TEST(RandomModel, HeadTypeAppliesToEmbeddingAndHead) {
    auto options = model_options("tiny-llama", "Q4_0");
    options.head_type = "q8_0";
    const Contents model(write_model(options, "head_type.gguf"));
    EXPECT_EQ(model.tensor("output.weight")->type, GGML_TYPE_Q8_0);
    EXPECT_EQ(model.tensor("token_embd.weight")->type, GGML_TYPE_Q8_0);
    EXPECT_EQ(model.tensor("blk.0.attn_q.weight")->type, GGML_TYPE_Q4_0);
}

// --- text goes in and out ---

class RandomModelText : public testing::Test {
  protected:
    void SetUp() override { ASSERT_NE(model_, nullptr) << llama_complaints(); }

    llama_model_ptr model_ = load_llama(tiny_model(), /*vocab_only=*/true);
    const llama_vocab* vocab_ = llama_model_get_vocab(model_.get());
};

TEST_F(RandomModelText, SurvivesTheRoundTrip) {
    for (const std::string text :
         {"The cat sat on the mat and was singing.\n\tTwice  , \r\n",
          "Grüße, naïve café – 1234567890", "日本語のテキスト", "🦙🚀 emoji 👩‍👩‍👧",
          "if (a<b) { return x[i]; } // \\ \"quoted\"", "\x7f\x01 \xC2\xA0\xC2\xAD."}) {
        EXPECT_EQ(text_of(vocab_, tokenize(vocab_, text)), text);
    }
}

TEST_F(RandomModelText, EveryByteIsTheTokenOfItsValue) {
    for (int byte = 0; byte < 256; ++byte) {
        EXPECT_EQ(piece_of(vocab_, byte), std::string(1, char(byte)));
    }
}

TEST_F(RandomModelText, MergesCommonLetters) {
    const auto tokens = tokenize(vocab_, "x and the");
    ASSERT_EQ(tokens.size(), 3u);
    EXPECT_EQ(piece_of(vocab_, tokens[1]), " and");
    EXPECT_EQ(piece_of(vocab_, tokens[2]), " the");
}

TEST_F(RandomModelText, SpecialTokensEndGeneration) {
    const auto tokens =
        tokenize(vocab_, "<|im_end|><|endoftext|><|im_start|>", /*parse_special=*/true);
    ASSERT_EQ(tokens.size(), 3u);
    EXPECT_EQ(llama_vocab_eos(vocab_), tokens[0]);
    EXPECT_TRUE(llama_vocab_is_eog(vocab_, tokens[0]));
    EXPECT_TRUE(llama_vocab_is_eog(vocab_, tokens[1]));
    EXPECT_FALSE(llama_vocab_is_eog(vocab_, tokens[2]));
    EXPECT_FALSE(llama_vocab_get_add_bos(vocab_));
}

TEST_F(RandomModelText, ChatTemplateIsKnownAsChatml) {
    const char* chat_template = llama_model_chat_template(model_.get(), nullptr);
    ASSERT_NE(chat_template, nullptr);
    const llama_chat_message message{"user", "Hi"};
    char text[128];
    const int n =
        llama_chat_apply_template(chat_template, &message, 1, /*add_ass=*/true, text, sizeof text);
    ASSERT_GT(n, 0);
    EXPECT_EQ(std::string(text, n), "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

TEST(RandomModel, FillersPadTheVocabularyWithDistinctWords) {
    auto options = model_options("smollm2-135m", "Q4_0");
    options.n_layers = 1;
    const auto model = load_llama(write_model(options, "padded.gguf"), /*vocab_only=*/true);
    ASSERT_NE(model, nullptr) << llama_complaints();
    const llama_vocab* vocab = llama_model_get_vocab(model.get());
    std::set<std::string> pieces;
    for (int token = 0; token < llama_vocab_n_tokens(vocab); ++token) {
        pieces.insert(piece_of(vocab, token));
    }
    EXPECT_EQ(pieces.size(), 49152u);
    EXPECT_EQ(pieces.count(""), 0u);
    EXPECT_EQ(llama_complaints(), "");
}

// --- bad options are refused ---

TEST(RandomModel, UnknownShapeIsAnErrorThatListsTheShapes) {
    const std::string error = error_of(model_options("huge", "F32"));
    EXPECT_NE(error.find("'huge'"), std::string::npos) << error;
    EXPECT_NE(error.find("tiny-llama"), std::string::npos) << error;
    EXPECT_NE(error.find("qwen3-32b"), std::string::npos) << error;
}

TEST(RandomModel, UnknownTypeIsAnErrorThatListsTheTypes) {
    for (auto options : {model_options("tiny", "Q9"), model_options("tiny", "")}) {
        const std::string error = error_of(options);
        EXPECT_NE(error.find("MXFP4"), std::string::npos) << error;
    }
}

TEST(RandomModel, TypesThatNeedAnImportanceMatrixAreRefused) {
    const std::string error = error_of(model_options("small-llama", "iq2_xxs"));
    EXPECT_NE(error.find("importance matrix"), std::string::npos) << error;
}

TEST(RandomModel, RowsThatDoNotFitTheBlocksAreRefusedWithAnAlternative) {
    const std::string error = error_of(model_options("tiny-llama", "Q4_K"));
    EXPECT_NE(error.find("blocks of 256"), std::string::npos) << error;
    EXPECT_NE(error.find("rows of 64"), std::string::npos) << error;
    EXPECT_NE(error.find("small-llama"), std::string::npos) << error;
}

TEST(RandomModel, HeadOfMixedTypesIsRefused) {
    for (const char* head_type : {"Q4_K_M", "MXFP4_MOE"}) {
        auto options = model_options("small-llama", "Q4_K");
        options.head_type = head_type;
        EXPECT_NE(error_of(options).find("--head-type"), std::string::npos) << head_type;
    }
}

TEST(RandomModel, TypesOfExpertsNeedExperts) {
    EXPECT_EQ(error_of(model_options("tiny-llama", "MXFP4_MOE")),
              "--type: expected a shape with experts, such as tiny-gpt-oss, for a type that has "
              "another one for experts (MXFP4); found tiny-llama");
}

TEST(RandomModel, ImpossibleLayerCountIsRefused) {
    for (const int n_layers : {-1, 513}) {
        auto options = model_options("tiny", "F32");
        options.n_layers = n_layers;
        EXPECT_NE(error_of(options).find("--layers"), std::string::npos) << n_layers;
    }
}

// --- the file is complete or absent ---

TEST(RandomModel, UnusablePathsAreRefused) {
    const auto options = model_options("tiny", "F32");
    EXPECT_NE(error_of(options, temporary_folder()), "");
    EXPECT_NE(error_of(options, "/dev/null"), "");
    EXPECT_NE(error_of(options, ""), "");
    EXPECT_NE(error_of(options, temporary_folder() / "missing" / "x.gguf").find("missing"),
              std::string::npos);
}

TEST(RandomModel, ProgressRisesToOne) {
    auto options = model_options("tiny", "F32");
    std::vector<double> fractions;
    options.on_progress = [&](double fraction) { fractions.push_back(fraction); };
    write_model(options, "progress.gguf");
    EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
    EXPECT_EQ(fractions.back(), 1.0);
}

class FreshFolder : public testing::Test {
  protected:
    void SetUp() override { fs::create_directory(folder_); }
    void TearDown() override { fs::remove_all(folder_); }

    fs::path folder_ = temporary_folder() / "fresh";
    fs::path path_ = folder_ / "x.gguf";
};

TEST_F(FreshFolder, KeepsOnlyTheOldFileWhenWritingIsAborted) {
    std::ofstream(path_) << "old";
    auto options = model_options("tiny", "F32");
    options.on_progress = [](double) { throw Error("enough"); };
    EXPECT_EQ(error_of(options, path_), "enough");
    EXPECT_EQ(read_bytes(path_), "old");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(FreshFolder, StaysEmptyWhenThereIsNoSpace) {
    rlimit unlimited{};
    getrlimit(RLIMIT_FSIZE, &unlimited);
    const rlimit tight{.rlim_cur = 100'000, .rlim_max = unlimited.rlim_max};
    const auto old_handler =
        std::signal(SIGXFSZ, SIG_IGN);  // report the limit as an error, not as a signal
    setrlimit(RLIMIT_FSIZE, &tight);
    const std::string error = error_of(model_options("tiny", "F32"), path_);
    setrlimit(RLIMIT_FSIZE, &unlimited);
    std::signal(SIGXFSZ, old_handler);
    EXPECT_NE(error.find("x.gguf"), std::string::npos) << error;
    EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
}  // namespace knap::random_model_test
