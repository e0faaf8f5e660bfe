// What the handlers of requests share: the model, its sessions, threads for short work, metrics.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "knap/chat.h"
#include "knap/knap.h"

#include "serve/answer/answer.h"
#include "serve/api/generation_fields.h"
#include "serve/engine/answer_memory.h"
#include "serve/engine/idle_time.h"
#include "serve/engine/metrics.h"
#include "serve/engine/session_pool.h"
#include "serve/periodic_calls.h"
#include "serve/task_threads.h"

namespace knap {

struct ServiceConfig {
    std::string alias{};  // the name of the model; empty: its file's
    int n_sessions = 8;
    int n_queue = 64;
    std::chrono::seconds timeout{600};  // of a request; it then ends with what it has
    GenerationDefaults defaults{};
    std::string chat_template{};      // a name or Jinja text; empty: the model's own
    bool is_strict_model = false;     // refuse requests for another model
    int n_memory_tokens = 8192;       // of earlier answers to copy from, for each API key; 0: none
    IdleWork idle_work{};             // while nothing is asked; empty: none
    bool searches_when_idle = false;  // sessions do, on their conversations
    bool has_slots = true;            // GET /slots
    bool has_metrics = true;          // GET /metrics
};

class Service {
  public:
    // `engine` must outlive the object.
    Service(Engine& engine_to_serve, ServiceConfig service_config);
    // Cancels answers under way, and runs the tasks that are left.
    ~Service();
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    // Throws RequestError if the model has no chat template that can be used.
    const ChatFormat& format() const;
    bool has_format() const { return format_.has_value(); }
    AnswerHead head(std::string object, std::string_view prefix) const;
    std::string piece(Token token) const;
    ServerGauges gauges() const;

    Engine& engine;
    const ServiceConfig config;
    const ModelInfo info;
    const std::string model_name;
    const std::int64_t created;  // seconds since 1970

  private:
    std::optional<ChatFormat> format_;
    std::string format_error_;  // why there is none

  public:
    Metrics metrics;
    AnswerMemory memory;
    std::atomic<bool> is_stopping = false;  // new requests are refused
    TaskThreads tasks;
    PeriodicCalls periodic;  // about ten times a second
    SessionPool pool;
    IdleTime idle_time;
};

}  // namespace knap
