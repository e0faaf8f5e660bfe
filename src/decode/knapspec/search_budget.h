// How much of a request's time may go into measuring and searching. It is an investment: what it
// finds pays for it, and it must go unnoticed where it finds nothing (docs/methods.md, "Search
// budget"). What the strategy takes to choose and to learn from rounds comes out of it first.
#pragma once

#include "base/clock.h"

namespace knap {

// How many tokens an answer is expected to have that has `n_written`, if it may have `n_room` more:
// it goes on for as long as it has, and for a typical answer at least.
int expected_answer(int n_written, int n_room);

class SearchBudget {
  public:
    explicit SearchBudget(double share) : share_(share) {}

    void begin();  // a request begins
    // The request has run for `elapsed_ms`, searches included. A clock that runs backwards adds
    // nothing, and one that leaps adds at most `plausible_ms`; 0: no limit.
    void advance(double elapsed_ms, double plausible_ms);
    void spend(double ms);

    double share() const { return share_; }
    double spent_ms() const { return spent_ms_; }
    double left_ms() const { return share_ * time_ms_ - spent_ms_; }
    // The same with what may be borrowed against an answer of `n_expected` tokens in all, of which
    // `n_written` are written, if one takes `step_ms`. What is spent of it is missing later.
    double left_with_loan_ms(int n_written, int n_expected, double step_ms) const;

  private:
    double share_;
    double last_reading_ms_ = 0;
    double time_ms_ = 0;  // of the request, without leaps of the clock
    double spent_ms_ = 0;
};

// Spends the time until its end, less what is spent meanwhile.
class SpendingTime {
  public:
    explicit SpendingTime(SearchBudget& budget)
        : budget_(budget), spent_before_ms_(budget.spent_ms()) {}
    ~SpendingTime() {
        budget_.spend(watch_.elapsed_ms() - (budget_.spent_ms() - spent_before_ms_));
    }
    SpendingTime(const SpendingTime&) = delete;
    SpendingTime& operator=(const SpendingTime&) = delete;

  private:
    SearchBudget& budget_;
    double spent_before_ms_;
    Stopwatch watch_;
};

}  // namespace knap
