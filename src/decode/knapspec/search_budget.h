// How much of a request's time may go into measuring and searching (an investment: it is paid for
// by what it finds, and it must not be felt where it finds nothing).
#pragma once

namespace knap {

class SearchBudget {
  public:
    explicit SearchBudget(double share) : share_(share) {}

    void begin();  // a request begins
    // The request has run for `elapsed_ms`, searches included. A clock that runs backwards or leaps
    // adds nothing beyond `plausible_ms` to what was known; 0: any first reading is believed.
    void advance(double elapsed_ms, double plausible_ms);
    void spend(double ms);

    double left_ms() const { return share_ * time_ms_ - spent_ms_; }

  private:
    double share_;
    double last_reading_ms_ = 0;
    double time_ms_ = 0;  // of the request, as far as it is believed
    double spent_ms_ = 0;
};

}  // namespace knap
