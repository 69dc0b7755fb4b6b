#include "cli/man.hpp"

#include "base/text.hpp"

namespace zed::cli {
namespace {

/// Text for roff: no line begins with a control character, no dash becomes a hyphen.
std::string escaped(std::string_view text) {
  std::string result;
  for (char c : text) {
    const bool at_start = result.empty() || result.back() == '\n';
    if (at_start && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
  }
  return result;
}

std::string bold(std::string_view text) {
  return "\\fB" + escaped(text) + "\\fR";
}
std::string italic(std::string_view text) {
  return "\\fI" + escaped(text) + "\\fR";
}

std::string option_text(const OptionShape& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += (names.empty() ? "" : ", ") + bold(name);
  if (!option.value.empty()) names += " " + italic(option.value);
  return ".TP\n" + names + "\n" + escaped(option.help.empty() ? "as its name says" : option.help) +
         "\n";
}

bool is_common(const OptionShape& option) {
  for (const std::string& name : option.names)
    for (const char* common : {"--json", "-o", "--yes", "--no-color", "--socket", "--help"})
      if (name == common) return true;
  return false;
}

std::string command_text(const CommandShape& shape) {
  std::string head = bold("zedctl " + shape.path);
  for (const std::string& positional : shape.positionals)
    head += " " + italic(positional);
  std::string text = ".SS " + head + "\n" + escaped(shape.help) + ".\n";
  for (const OptionShape& option : shape.described)
    if (!is_common(option)) text += option_text(option);
  return text;
}

std::string common_options(const std::vector<CommandShape>& shapes) {
  for (const CommandShape& shape : shapes) {
    if (shape.path != "status") continue;
    std::string text;
    for (const OptionShape& option : shape.described)
      if (is_common(option)) text += option_text(option);
    return text;
  }
  return "";
}

/// A command that only groups others says nothing of its own.
bool is_group(const CommandShape& shape, const std::vector<CommandShape>& shapes) {
  for (const CommandShape& inner : shapes)
    if (inner.path.rfind(shape.path + " ", 0) == 0) return true;
  return false;
}

}  // namespace

std::string manual_page(const std::vector<CommandShape>& shapes, const std::string& version) {
  std::string text =
      ".TH ZEDCTL 1 \"\" \"zed " + version +
      "\" \"User Commands\"\n"
      ".SH NAME\nzedctl \\- run a small, mixed GPU fleet as one thing\n"
      ".SH SYNOPSIS\n.B zedctl\n.I COMMAND\n[\\fIOPTION\\fR ...]\n"
      ".SH DESCRIPTION\n" +
      escaped("zedctl asks the controller of a fleet and shows what comes back. Which "
              "controller: --socket, else ZED_CONTROLLER, else the fleet that zedctl login or "
              "zedctl context chose, else the development fleet that was started last, else a "
              "controller of this machine (/run/zed/controller.sock, /var/lib/zed/controller, "
              "~/.local/state/zed/controller).") +
      "\n.PP\n" +
      escaped("Ctrl-C never stops a job: it leaves the wait and says how to come "
              "back.") +
      "\n.SH COMMANDS\n";
  for (const CommandShape& shape : shapes)
    if (!is_group(shape, shapes)) text += command_text(shape);
  text += ".SH OPTIONS OF ALL COMMANDS\n" + common_options(shapes);
  text += ".SH EXIT STATUS\n";
  const std::pair<const char*, const char*> statuses[] = {
      {"0", "done"},
      {"1", "error, or the job that was waited for did not succeed"},
      {"2", "plan: changes are pending"},
      {"3", "no node can hold it, not even an idle one"},
      {"4", "nothing of that name"},
      {"5", "refused: the message says how to insist"},
      {"130", "Ctrl-C during a wait"}};
  for (const auto& [status, meaning] : statuses)
    text += ".TP\n" + bold(status) + "\n" + escaped(meaning) + "\n";
  text +=
      ".SH ENVIRONMENT\n"
      ".TP\n\\fBZED_CONTROLLER\\fR\nthe controller's socket\n"
      ".TP\n\\fBZED_FLEET\\fR\nthe fleet to speak to, of those that zedctl login made known\n"
      ".TP\n\\fBNO_COLOR\\fR\nif it is set and not empty: no colours\n"
      ".TP\n\\fBZED_DEV_DIR\\fR\nwhere the development fleet keeps its data\n"
      ".SH FILES\n.TP\n.I .zedignore\nin a folder of code: patterns, one a line, of what is not "
      "submitted\n"
      ".SH SEE ALSO\n.BR zfs (8)\n";
  return text;
}

}  // namespace zed::cli
