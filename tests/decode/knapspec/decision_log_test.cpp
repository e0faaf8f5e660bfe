#include "decode/knapspec/decision_log.h"

#include <gtest/gtest.h>

namespace knap::decision_log_test {
namespace {

Decision decision(int token, const char* source, double predicted = 1) {
    return {.token = token, .source = source, .reason = "so", .predicted = predicted};
}

TEST(DecisionLog, MeasuresUntilTheNextDecision) {
    DecisionLog log;
    log.add_round(10, 10);  // before any decision: not counted
    log.decide(decision(0, "plain"), Reason::Kind::not_known);
    log.add_round(10, 10);
    log.decide(decision(5, "a=w16+64", 1.4), Reason::Kind::pays);
    log.add_round(10, 12);
    log.add_round(10, 16);
    ASSERT_EQ(log.decisions().size(), 2u);
    EXPECT_DOUBLE_EQ(log.decisions()[0].measured, 1);
    EXPECT_EQ(log.decisions()[1].token, 5);
    EXPECT_DOUBLE_EQ(log.decisions()[1].predicted, 1.4);
    EXPECT_DOUBLE_EQ(log.decisions()[1].measured, 1.4);
}

TEST(DecisionLog, UnchangedDecisionIsNotRepeated) {
    DecisionLog log;
    log.decide(decision(0, "plain"), Reason::Kind::too_short);
    log.decide(decision(8, "plain"), Reason::Kind::too_short);
    EXPECT_EQ(log.decisions().size(), 1u);
    log.decide(decision(16, "plain"), Reason::Kind::cannot_pay);
    EXPECT_EQ(log.decisions().size(), 2u);
}

TEST(DecisionLog, RequestStartsWithAnEmptyLog) {
    DecisionLog log;
    log.decide(decision(0, "plain"), Reason::Kind::too_short);
    log.begin();
    EXPECT_TRUE(log.decisions().empty());
}

TEST(DecisionLog, ImpossibleTimesAreIgnored) {
    DecisionLog log;
    log.decide(decision(0, "plain"), Reason::Kind::too_short);
    log.add_round(0, 10);
    log.add_round(10, -1);
    EXPECT_EQ(log.decisions()[0].measured, 0);
}

}  // namespace
}  // namespace knap::decision_log_test
