// Functions that are called again and again, each until it says that it is done. Any thread may add
// one; one thread calls them.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

namespace knap {

class PeriodicCalls {
  public:
    // False: not again.
    using Call = std::function<bool()>;

    void add(Call call);
    void run();

  private:
    std::mutex mutex_;
    std::vector<Call> calls_;
};

}  // namespace knap
