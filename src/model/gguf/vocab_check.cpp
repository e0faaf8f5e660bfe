#include "model/gguf/vocab_check.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "gguf.h"

#include "base/error.h"
#include "base/log.h"
#include "base/quoted.h"
#include "base/text.h"
#include "model/gguf/gguf_file.h"

namespace knap {
namespace {

// The tokenizers of our architectures, with the ids that libllama uses for the first and the last
// token of a text when the file names none.
struct Tokenizer {
    std::string_view name;  // tokenizer.ggml.model
    int default_bos;
    int default_eos;
    bool needs_merges;
};
constexpr Tokenizer kTokenizers[] = {
    {"llama", 1, 2, false},  // SentencePiece
    {"gpt2", 11, 11, true},  // byte-level BPE
};

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";

// Read as u32. libllama ignores ids outside the vocabulary.
constexpr std::string_view kTokenIds[] = {
    "tokenizer.ggml.bos_token_id",     "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.eot_token_id",     "tokenizer.ggml.eom_token_id",
    "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.seperator_token_id",
    "tokenizer.ggml.padding_token_id", "tokenizer.ggml.mask_token_id",
    "tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.fim_suf_token_id",
    "tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.fim_pad_token_id",
    "tokenizer.ggml.fim_rep_token_id", "tokenizer.ggml.fim_sep_token_id",
    "tokenizer.ggml.prefix_token_id",  "tokenizer.ggml.suffix_token_id",
    "tokenizer.ggml.middle_token_id",
};

constexpr std::string_view kSwitches[] = {
    "tokenizer.ggml.add_bos_token",
    "tokenizer.ggml.add_eos_token",
    "tokenizer.ggml.add_sep_token",
    "tokenizer.ggml.add_space_prefix",
    "tokenizer.ggml.remove_extra_whitespaces",
};

class VocabularyCheck {
  public:
    explicit VocabularyCheck(const GgufFile& file) : file_(file), metadata_(file.metadata()) {}

    void run() {
        const Tokenizer& tokenizer = find_tokenizer();
        check_pre_tokenizer();
        n_tokens_ = check_array(kTokens, {GGUF_TYPE_STRING}, "strings").value_or(0);
        if (n_tokens_ == 0) {
            fail_key(kTokens, "the tokens", "none");
        }
        check_tokens_differ();
        check_per_token("tokenizer.ggml.scores", {GGUF_TYPE_FLOAT32, GGUF_TYPE_INT32}, "f32");
        check_per_token("tokenizer.ggml.token_type", {GGUF_TYPE_INT32}, "i32");
        const auto n_merges = check_array("tokenizer.ggml.merges", {GGUF_TYPE_STRING}, "strings");
        if (tokenizer.needs_merges && !n_merges) {
            fail_key("tokenizer.ggml.merges", "an array of strings", "no such key");
        }
        check_array("tokenizer.ggml.suppress_tokens", {GGUF_TYPE_INT32}, "i32");
        for (const std::string_view key : kTokenIds) {
            check_token_id(key);
        }
        check_has_token("tokenizer.ggml.bos_token_id", tokenizer.default_bos);
        check_has_token("tokenizer.ggml.eos_token_id", tokenizer.default_eos);
        for (const std::string_view key : kSwitches) {
            file_.boolean(key);
        }
        file_.string("tokenizer.chat_template");
    }

  private:
    template <typename Expected, typename Found>
    [[noreturn]] void fail_key(std::string_view key,
                               const Expected& expected,
                               const Found& found) const {
        fail(file_.path().string(), ": key ", key, ": expected ", expected, ", found ", found);
    }

    const Tokenizer& find_tokenizer() const {
        constexpr std::string_view kKey = "tokenizer.ggml.model";
        const std::optional<std::string> name = file_.string(kKey);
        const auto found = std::find_if(std::begin(kTokenizers), std::end(kTokenizers),
                                        [&](const Tokenizer& t) { return t.name == name; });
        if (found == std::end(kTokenizers)) {
            fail_key(kKey, concat("one of ", join(kTokenizers, ", ", &Tokenizer::name)),
                     name ? in_quotes(*name) : "no such key");
        }
        return *found;
    }

    // With this pre-tokenizer, made for an embedding model, libllama aborts on spaces in the text.
    void check_pre_tokenizer() const {
        constexpr std::string_view kKey = "tokenizer.ggml.pre";
        if (file_.string(kKey) == "whitespace") {
            fail_key(kKey, "a pre-tokenizer for text generation", "'whitespace'");
        }
    }

    std::optional<std::size_t> check_array(std::string_view key,
                                           std::initializer_list<gguf_type> types,
                                           const char* elements) const {
        const std::optional<std::size_t> size = file_.array_size(key);
        if (size) {
            const gguf_type type = gguf_get_arr_type(metadata_, id_of(key));
            if (std::find(types.begin(), types.end(), type) == types.end()) {
                fail_key(key, concat("an array of ", elements),
                         concat("an array of ", gguf_type_name(type)));
            }
        }
        return size;
    }

    void check_per_token(std::string_view key,
                         std::initializer_list<gguf_type> types,
                         const char* elements) const {
        const std::optional<std::size_t> size = check_array(key, types, elements);
        if (size && *size != n_tokens_) {
            fail_key(key, concat("a value for each of ", n_tokens_, " tokens"), *size);
        }
    }

    // libllama maps texts to ids and requires an entry for every id.
    void check_tokens_differ() const {
        const std::int64_t tokens = id_of(kTokens);
        std::unordered_set<std::string_view> seen;
        seen.reserve(n_tokens_);
        std::deque<std::string> substitutes;  // libllama's names for empty tokens
        for (std::size_t i = 0; i < n_tokens_; ++i) {
            std::string_view text = gguf_get_arr_str(metadata_, tokens, i);
            if (text.empty()) {
                text = substitutes.emplace_back(concat("[EMPTY_", i, "]"));
            }
            if (!seen.insert(text).second) {
                fail_key(kTokens, "distinct tokens", concat(in_quotes(text), " twice"));
            }
        }
    }

    void check_token_id(std::string_view key) const {
        const std::optional<std::uint64_t> id = file_.integer(key);
        if (!id) {
            return;
        }
        const gguf_type type = gguf_get_kv_type(metadata_, id_of(key));
        if (type != GGUF_TYPE_UINT32) {
            fail_key(key, "u32", gguf_type_name(type));
        }
        if (*id >= n_tokens_) {
            log_info(file_.path().string(), ": key ", key, ": ", *id,
                     " is outside the vocabulary of ", n_tokens_, " tokens and is ignored");
        }
    }

    // A text may start or end with this token, so it must exist.
    void check_has_token(std::string_view key, int default_id) const {
        const std::uint64_t id = file_.integer(key).value_or(n_tokens_);
        if (id >= n_tokens_ && std::cmp_greater_equal(default_id, n_tokens_)) {
            fail_key(key, concat("an id below ", n_tokens_), "none");
        }
    }

    std::int64_t id_of(std::string_view key) const {
        return gguf_find_key(metadata_, std::string(key).c_str());
    }

    const GgufFile& file_;
    const gguf_context* metadata_;
    std::size_t n_tokens_ = 0;
};

}  // namespace

void check_vocabulary(const GgufFile& file) {
    VocabularyCheck(file).run();
}

}  // namespace knap
