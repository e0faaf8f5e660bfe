// Runs the passes of a single sequence at once, on the caller's thread.
#pragma once

#include "forward/batch.h"

namespace knap {

class DirectRunner final : public PassRunner {
  public:
    // `turns` is for passes on devices that others use as well: they take turns there. Null: nobody
    // else does. Both must outlive the object.
    explicit DirectRunner(BatchRunner& runner, PassRunner* turns = nullptr)
        : runner_(runner), turns_(turns) {}

    void run(RowRun& run) override {
        RowRun* only = &run;
        run_alone([&] { runner_.run({&only, 1}); });
    }
    void run_alone(const std::function<void()>& work) override {
        if (turns_ != nullptr) {
            turns_->run_alone(work);
        } else {
            work();
        }
    }

  private:
    BatchRunner& runner_;
    PassRunner* turns_;
};

}  // namespace knap
