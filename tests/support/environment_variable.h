// Sets an environment variable of this process while the object lives.
#pragma once

#include <optional>
#include <string>

#include <stdlib.h>

namespace knap::test {

class EnvironmentVariable {
  public:
    // An empty value sets the variable to the empty string.
    EnvironmentVariable(const char* name, const std::string& value) : name_(name) {
        if (const char* before = getenv(name)) {
            before_ = before;
        }
        setenv(name, value.c_str(), 1);
    }
    ~EnvironmentVariable() {
        if (before_) {
            setenv(name_, before_->c_str(), 1);
        } else {
            unsetenv(name_);
        }
    }
    EnvironmentVariable(const EnvironmentVariable&) = delete;
    EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

  private:
    const char* name_;
    std::optional<std::string> before_;
};

}  // namespace knap::test
