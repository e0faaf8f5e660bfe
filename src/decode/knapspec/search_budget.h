// How much of a request's time may go into measuring and searching. It is an investment: what it
// finds pays for it, and it must go unnoticed where it finds nothing (docs/methods.md, "Search
// budget").
#pragma once

namespace knap {

class SearchBudget {
  public:
    explicit SearchBudget(double share) : share_(share) {}

    void begin();  // a request begins
    // The request has run for `elapsed_ms`, searches included. A clock that runs backwards adds
    // nothing, and one that leaps adds at most `plausible_ms`; 0: no limit.
    void advance(double elapsed_ms, double plausible_ms);
    void spend(double ms);

    double share() const { return share_; }
    double left_ms() const { return share_ * time_ms_ - spent_ms_; }

  private:
    double share_;
    double last_reading_ms_ = 0;
    double time_ms_ = 0;  // of the request, without leaps of the clock
    double spent_ms_ = 0;
};

}  // namespace knap
