// Rows of residual streams that stay on a device from pass to pass. Passes resume from them, store
// captured rows in them and compare captured rows with them, all by index (BankRows), so no stream
// has to be copied to the host. Only the device that lends one looks inside.
#pragma once

#include <cstddef>

namespace knap {

// No bank is larger.
inline constexpr std::size_t kMaxBankBytes = std::size_t{512} << 20;

class StreamBank {
  public:
    virtual ~StreamBank() = default;
};

}  // namespace knap
