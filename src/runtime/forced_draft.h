// A draft of the text that a grammar forces to come next.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "knap/types.h"

#include "decode/forced_text.h"
#include "text/tokenizer.h"

namespace knap {

class ForcedDraft final : public ForcedText {
  public:
    // `tokenizer` must outlive the object.
    ForcedDraft(const Tokenizer& tokenizer, std::string text, int max_tokens);

    bool is_empty() const { return tokens_.empty(); }
    // The usual tokens of the text. Of several, the last is left out, and so is a single byte, such
    // as the quote that ends a string: often a longer token, which goes on after the forced text,
    // comes in its place.
    const std::vector<Token>& tokens() const { return tokens_; }
    int n_agreeing(std::span<const Token> tokens) const override;
    // Whether another draft agrees with all of the text that these tokens spell.
    bool is_covered_by(std::span<const Token> draft) const;

  private:
    const Tokenizer& tokenizer_;
    std::string text_;
    std::vector<Token> tokens_;
};

}  // namespace knap
