#include "serve/http/outbox.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <sys/socket.h>
#include <sys/uio.h>

namespace knap {

void Outbox::add(std::string bytes, std::size_t n_counted) {
    if (!bytes.empty()) {
        parts_.push_back({std::move(bytes), n_counted});
    }
}

Outbox::Progress Outbox::send(int descriptor) {
    constexpr std::size_t kMaxParts = 32;  // in one system call
    std::array<iovec, kMaxParts> buffers;
    std::size_t n_buffers = 0;
    for (; n_buffers < std::min(kMaxParts, parts_.size()); ++n_buffers) {
        std::string& bytes = parts_[n_buffers].bytes;
        const std::size_t n_skipped = n_buffers == 0 ? n_sent_of_first_ : 0;
        buffers[n_buffers] = {bytes.data() + n_skipped, bytes.size() - n_skipped};
    }
    msghdr message{};
    message.msg_iov = buffers.data();
    message.msg_iovlen = n_buffers;
    const ssize_t result = ::sendmsg(descriptor, &message, MSG_NOSIGNAL);
    if (result < 0) {
        return {.has_failed = errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR};
    }
    Progress progress{.n_sent = static_cast<std::size_t>(result)};
    n_sent_of_first_ += progress.n_sent;
    while (!parts_.empty() && n_sent_of_first_ >= parts_.front().bytes.size()) {
        n_sent_of_first_ -= parts_.front().bytes.size();
        progress.n_released += parts_.front().n_counted;
        parts_.pop_front();
    }
    return progress;
}

}  // namespace knap
