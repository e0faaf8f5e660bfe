#include "decode/decision_log.h"

#include <string>

#include <gtest/gtest.h>

namespace knap {
namespace {

// Of the kind that its first word has.
Reason reason(const char* text) {
    const bool is_short = std::string(text).starts_with("short");
    return {is_short ? Reason::Kind::too_short : Reason::Kind::pays, text};
}

TEST(DecisionLog, MeasuresUntilTheNextDecision) {
    DecisionLog log;
    log.add_round(10, 10);  // before any decision: nobody's
    log.decide(0, "plain", reason("nothing is known"), 1);
    log.add_round(10, 10);
    log.decide(5, "a=w16+64", reason("it pays"), 1.4);
    log.add_round(10, 12);
    log.add_round(10, 16);
    ASSERT_EQ(log.decisions().size(), 2u);
    EXPECT_DOUBLE_EQ(log.decisions()[0].measured, 1);
    EXPECT_EQ(log.decisions()[1].token, 5);
    EXPECT_DOUBLE_EQ(log.decisions()[1].predicted, 1.4);
    EXPECT_DOUBLE_EQ(log.decisions()[1].measured, 1.4);
}

TEST(DecisionLog, WhatStandsIsNotRepeated) {
    DecisionLog log;
    log.decide(0, "plain", reason("short"), 1);
    log.decide(8, "plain", reason("short, by 4 tokens"), 1);
    EXPECT_EQ(log.decisions().size(), 1u);
    log.decide(16, "plain", reason("long"), 1);
    EXPECT_EQ(log.decisions().size(), 2u);
}

TEST(DecisionLog, ARequestStartsWithAnEmptyOne) {
    DecisionLog log;
    log.decide(0, "plain", reason("short"), 1);
    log.begin();
    EXPECT_TRUE(log.decisions().empty());
}

TEST(DecisionLog, TimesThatCannotBeAreLeftOut) {
    DecisionLog log;
    log.decide(0, "plain", reason("short"), 1);
    log.add_round(0, 10);
    log.add_round(10, -1);
    EXPECT_EQ(log.decisions()[0].measured, 0);
}

}  // namespace
}  // namespace knap
