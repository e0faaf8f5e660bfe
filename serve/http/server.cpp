#include "serve/http/server.h"

#include <atomic>
#include <cerrno>
#include <exception>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/socket.h>

#include "base/log.h"
#include "serve/http/connection.h"
#include "serve/http/event_loop.h"
#include "serve/http/listening_sockets.h"

namespace knap {

namespace {

// Connections taken from a listening socket before others have their turn.
constexpr int kMaxAcceptedAtOnce = 64;
// After a failure to accept: the connection stays in the queue, and would be offered again at once.
constexpr std::chrono::milliseconds kAcceptPause{100};

}  // namespace

struct HttpServer::Impl {
    struct Listener {
        Listener(EventLoop& loop, int descriptor) : socket(loop, descriptor), pause(loop) {}

        Socket socket;
        Timer pause;
    };

    Impl(HttpConfig config, HeaderCheck check, Handler handler, ErrorBody error_body);

    void accept_on(Listener& listener);
    void accept_all(Listener& listener);
    void add_connection(int descriptor);
    void stop_accepting();
    void close_all();
    void start_timer(std::chrono::milliseconds delay, std::function<void()> task);

    EventLoop loop{};
    ConnectionContext context;
    int port = 0;
    std::vector<std::unique_ptr<Listener>> listeners{};
    std::unordered_map<Connection*, std::shared_ptr<Connection>> connections{};
    std::atomic<int> n_connections = 0;
    bool has_warned = false;  // that no further connection can be accepted
    std::unordered_map<int, Timer> timers{};
    int n_timers_started = 0;
};

HttpServer::Impl::Impl(HttpConfig config, HeaderCheck check, Handler handler, ErrorBody error_body)
    : context{.limits = config.limits,
              .check = std::move(check),
              .handler = std::move(handler),
              .error_body = std::move(error_body),
              .loop = loop} {
    context.on_closed = [this](Connection* connection) {
        connections.erase(connection);
        --n_connections;
    };
    ListeningSockets sockets(config.host, config.port);
    port = sockets.port();
    for (const int descriptor : sockets.release()) {
        listeners.push_back(std::make_unique<Listener>(loop, descriptor));
        accept_on(*listeners.back());
    }
}

void HttpServer::Impl::accept_on(Listener& listener) {
    // Callbacks do not come after the listener is destroyed.
    listener.socket.wait_readable([this, &listener] { accept_all(listener); });
}

void HttpServer::Impl::accept_all(Listener& listener) {
    for (int i = 0; i < kMaxAcceptedAtOnce; ++i) {
        const int descriptor =
            ::accept4(listener.socket.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (descriptor >= 0) {
            add_connection(descriptor);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            break;
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            if (!std::exchange(has_warned, true)) {
                log_warning("server: no further connections at ", n_connections.load(),
                            " (raise the limit of open files, ulimit -n)");
            }
            listener.pause.start(kAcceptPause, [this, &listener] { accept_all(listener); });
            return;
        }
    }
    accept_on(listener);
}

void HttpServer::Impl::add_connection(int descriptor) {
    try {
        const auto connection = std::make_shared<Connection>(context, descriptor);
        connections.emplace(connection.get(), connection);
        ++n_connections;
        connection->guard([&] { connection->start(); });
    } catch (const std::exception& error) {
        log_warning("server: a connection failed: ", error.what());
    }
}

void HttpServer::Impl::stop_accepting() {
    context.is_closing = true;
    listeners.clear();
    const auto all = connections;
    for (const auto& [_, connection] : all) {
        connection->close_if_idle();
    }
}

void HttpServer::Impl::close_all() {
    stop_accepting();
    const auto all = connections;
    for (const auto& [_, connection] : all) {
        connection->close();
    }
}

void HttpServer::Impl::start_timer(std::chrono::milliseconds delay, std::function<void()> task) {
    const int id = n_timers_started++;
    Timer& timer = timers.emplace(id, loop).first->second;
    timer.start(delay, [this, id, task = std::move(task)] {
        timers.erase(id);
        try {
            task();
        } catch (const std::exception& error) {
            log_warning("server: a task failed: ", error.what());
        }
    });
}

HttpServer::HttpServer(HttpConfig config, HeaderCheck check, Handler handler, ErrorBody error_body)
    : impl_(std::make_unique<Impl>(
          std::move(config), std::move(check), std::move(handler), std::move(error_body))) {}

HttpServer::~HttpServer() = default;

int HttpServer::port() const {
    return impl_->port;
}

void HttpServer::run() {
    impl_->loop.run();
}

void HttpServer::post(std::function<void()> task) {
    (void)impl_->loop.tasks()->post(std::move(task));
}

void HttpServer::after(std::chrono::milliseconds delay, std::function<void()> task) {
    post([impl = impl_.get(), delay, task = std::move(task)] { impl->start_timer(delay, task); });
}

void HttpServer::stop_accepting() {
    post([impl = impl_.get()] { impl->stop_accepting(); });
}

void HttpServer::stop() {
    post([impl = impl_.get()] {
        impl->close_all();
        impl->loop.stop();
    });
}

int HttpServer::n_connections() const {
    return impl_->n_connections;
}

}  // namespace knap
