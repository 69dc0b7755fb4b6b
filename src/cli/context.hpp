#pragma once
// What a command works with: its common options, the terminal, the controller, Ctrl-C.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "cli/exit_code.hpp"
#include "cli/invocation.hpp"
#include "cli/view.hpp"
#include "http/client.hpp"

namespace zed::cli {

/// What is known of where input and output go.
struct Terminal {
  bool input = false;
  bool output = false;
  bool error = false;
  std::size_t width = 0;  ///< of standard output; 0 if it is no terminal
  bool colour = false;    ///< by NO_COLOR and TERM

  static Terminal detect();
};

/// Catches SIGINT from now on: waits end, the command says how to come back. Once a program.
class Interrupt {
public:
  Interrupt();
  int fd() const { return fd_; }
  bool pending() const;
  /// False if Ctrl-C came meanwhile.
  bool sleep(Millis time) const;

private:
  int fd_ = -1;
};

/// The way to the controller: the socket `asked` or $ZED_CONTROLLER, the fleet that this person is
/// logged in to (cli/fleets.hpp), the development fleet that was started last, a controller of this
/// machine at its usual place. Errors: `unavailable`, naming how to start or name one.
Result<http::ClientOptions> find_controller(const std::string& asked);

class Context {
public:
  Context(Common options, Terminal terminal, const Interrupt& interrupt);

  const Common& options() const { return options_; }
  const Terminal& terminal() const { return terminal_; }
  const Interrupt& interrupt() const { return interrupt_; }
  /// For standard output, as of now.
  View view() const;
  /// For standard error.
  View error_view() const;

  /// Connects nowhere yet; the first call does. Errors: those of find_controller.
  Result<http::Client*> client();

  /// Standard output. A reader that went away ends the program as SIGPIPE would.
  void print(std::string_view text) const;
  /// Standard error.
  void note(std::string_view text) const;
  /// Prints the error (as JSON on standard output with --json) and gives its exit status.
  ExitCode report(Error error) const;
  /// Whether the person said yes. Error: `refused` if nobody is there to ask; --yes says yes.
  Result<bool> confirm(std::string_view question) const;

private:
  Common options_;
  Terminal terminal_;
  const Interrupt& interrupt_;
  std::optional<http::Client> client_;
};

}  // namespace zed::cli
