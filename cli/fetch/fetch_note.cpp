#include "cli/fetch/fetch_note.h"

#include "base/quoted.h"
#include "base/text.h"
#include "cli/progress.h"
#include "cli/report/report.h"

namespace knap {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenSamples = 250ms;
constexpr auto kWindow = 8s;
constexpr std::size_t kMaxNote = 34;  // with the bar, 80 columns

}  // namespace

std::string FetchNote::received(std::uint64_t n_done, std::uint64_t n_bytes, Time now) {
    if (samples_.empty() || now - samples_.back().time >= kBetweenSamples) {
        samples_.push_back({now, n_done});
    }
    while (now - samples_.front().time > kWindow) {
        samples_.pop_front();
    }
    const std::string size = format_bytes(static_cast<std::int64_t>(n_bytes));
    const Sample& first = samples_.front();
    const double seconds = std::chrono::duration<double>(now - first.time).count();
    if (seconds <= 0 || n_done <= first.n_done) {
        return size;
    }
    const double rate = static_cast<double>(n_done - first.n_done) / seconds;
    return concat(size, ", ", format_bytes(static_cast<std::int64_t>(rate)), "/s, ",
                  time_left(static_cast<double>(n_bytes - n_done) / rate));
}

std::string FetchNote::other(const std::string& note) {
    samples_.clear();
    return printable(note, kMaxNote);
}

}  // namespace knap
