#include "runtime/forced_draft.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/chat_models.h"

namespace knap::forced_draft_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ForcedDraftTest : public ::testing::Test {
  protected:
    ForcedDraft forced(std::string text, int max_tokens = 16) const {
        return {*tokenizer_, std::move(text), max_tokens};
    }
    Token token(std::string_view piece) const {
        Token token = 0;
        while (tokenizer_->piece(token) != piece) {
            ++token;
        }
        return token;
    }

    std::unique_ptr<Tokenizer> tokenizer_ = test::load_vocabulary(test::bpe_vocabulary());
    const Token t_ = token("t");
    const Token h_ = token("h");
    const Token e_ = token("e");
    const Token he_ = token("he");
};

TEST_F(ForcedDraftTest, LeavesTheLastOfSeveralTokensOut) {
    EXPECT_THAT(forced("the").tokens(), ElementsAre(t_));
    EXPECT_THAT(forced("he").tokens(), ElementsAre(he_));
    EXPECT_THAT(forced("t").tokens(), IsEmpty()) << "a single byte";
    EXPECT_THAT(forced("").tokens(), IsEmpty());
    EXPECT_TRUE(forced("").is_empty());
    EXPECT_THAT(forced("tttt", 2).tokens(), ElementsAre(t_, t_));
    EXPECT_THAT(forced("tttt", 0).tokens(), IsEmpty());
}

TEST_F(ForcedDraftTest, OtherTokensMayAgree) {
    EXPECT_EQ(forced("the").n_agreeing(std::vector{t_, h_, e_}), 3);
    EXPECT_EQ(forced("the").n_agreeing(std::vector{t_, h_, t_}), 2);
    EXPECT_EQ(forced("the").n_agreeing(std::vector{h_}), 0);
    EXPECT_EQ(forced("th").n_agreeing(std::vector{t_, he_, t_}), 2) << "`he` goes on after `th`";
}

TEST_F(ForcedDraftTest, ADraftCoversItIfItSpellsAsMuch) {
    EXPECT_TRUE(forced("tthe").is_covered_by(std::vector{t_, t_, h_}));
    EXPECT_FALSE(forced("tthe").is_covered_by(std::vector{t_}));
    EXPECT_FALSE(forced("tthe").is_covered_by(std::vector{t_, he_}));
}

}  // namespace
}  // namespace knap::forced_draft_test
