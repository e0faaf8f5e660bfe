#include "decode/knapspec/search_budget.h"

#include <algorithm>
#include <cmath>

namespace knap {

namespace {

// The length of an answer to plan for, whatever limit the request has, unless it is longer already.
constexpr int kTypicalAnswer = 512;
// What is spent with a loan is at most this part of the expected answer, and of what is written: an
// answer may end earlier than expected. It is taken once in a session, and with a memory once on a
// machine.
constexpr int kShortAnswer = 100;  // gets no loan
constexpr double kMostOfAnswer = 0.04;
constexpr double kMostOfWritten = 0.25;

}  // namespace

int expected_answer(int n_written, int n_room) {
    return n_written + std::min(n_room, std::max(kTypicalAnswer, n_written));
}

void SearchBudget::begin() {
    last_reading_ms_ = 0;
    time_ms_ = 0;
    spent_ms_ = 0;
}

void SearchBudget::advance(double elapsed_ms, double plausible_ms) {
    if (!std::isfinite(elapsed_ms)) {
        return;
    }
    const double passed = std::max(0.0, elapsed_ms - last_reading_ms_);
    time_ms_ += plausible_ms > 0 ? std::min(passed, plausible_ms) : passed;
    last_reading_ms_ = elapsed_ms;
}

void SearchBudget::spend(double ms) {
    if (std::isfinite(ms)) {
        spent_ms_ += std::max(0.0, ms);
    }
}

double SearchBudget::left_with_loan_ms(int n_written, int n_expected, double step_ms) const {
    if (share_ <= 0 || n_expected < kShortAnswer) {
        return left_ms();
    }
    const double most = std::min(kMostOfAnswer * n_expected, kMostOfWritten * n_written);
    return std::max(left_ms(), most * step_ms - spent_ms_);
}

}  // namespace knap
