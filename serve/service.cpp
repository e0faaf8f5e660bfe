#include "serve/service.h"

#include <ctime>
#include <filesystem>
#include <utility>

#include "serve/answer/identifier.h"
#include "serve/api/error.h"

namespace knap {
namespace {

constexpr int kTaskThreads = 2;

std::string name_of(const ServiceConfig& config, const ModelInfo& info) {
    return !config.alias.empty() ? config.alias
                                 : std::filesystem::path(info.path).filename().string();
}

}  // namespace

Service::Service(Engine& engine_to_serve, ServiceConfig service_config)
    : engine(engine_to_serve),
      config(std::move(service_config)),
      info(engine.info()),
      model_name(name_of(config, info)),
      created(std::time(nullptr)),
      metrics(model_name),
      memory(static_cast<std::size_t>(config.n_memory_tokens)),
      tasks(kTaskThreads),
      pool(engine, config.n_sessions, config.n_queue),
      idle_time(pool,
                {.work = config.idle_work,
                 .uses_sessions = config.searches_when_idle,
                 .on_worked = [this](double seconds) { metrics.add_idle_work(seconds); }}) {
    try {
        format_.emplace(engine, config.chat_template);
    } catch (const Error& error) {
        if (!config.chat_template.empty()) {
            throw;  // the user's own choice
        }
        format_error_ = error.what();
    }
}

// Answers that end post tasks, and a task may use every member: the one that started an answer may
// still be at work when the client has all of it.
Service::~Service() {
    pool.stop();
    tasks.stop();
}

const ChatFormat& Service::format() const {
    if (!format_) {
        ApiError error = plain_error(501, concat("this model cannot chat: ", format_error_));
        throw RequestError(std::move(error));
    }
    return *format_;
}

AnswerHead Service::head(std::string object, std::string_view prefix) const {
    return {.id = new_identifier(prefix),
            .object = std::move(object),
            .model = model_name,
            .fingerprint = concat("knap-", version()),
            .created = std::time(nullptr)};
}

std::string Service::piece(Token token) const {
    return engine.detokenize({&token, 1});
}

ServerGauges Service::gauges() const {
    return {.n_running = pool.n_running(),
            .n_waiting = pool.n_waiting(),
            .cache_use = engine.cache_use()};
}

}  // namespace knap
