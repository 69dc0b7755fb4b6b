// The cluster file is a subset of Elixir: Elixir's own parser is asked, once, about every golden
// file, about what `zedctl fmt` makes of it, and about files with one word taken away, doubled or
// swapped.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>

#include "spec/cluster_file.hpp"
#include "spec/lex.hpp"
#include "spec/parse.hpp"

namespace zed::spec {
namespace {

namespace fs = std::filesystem;
const fs::path golden = fs::path(ZED_SOURCE_DIR) / "test/golden";

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct Opinion {
  bool accepts = false;
  std::string strings;
};

/// Writes files into a folder of its own, asks Elixir about all of them, forgets them at the end.
class Oracle {
public:
  Oracle() {
    std::string path = fs::temp_directory_path() / "zed-elixir-XXXXXX";
    folder = ::mkdtemp(path.data());
  }
  ~Oracle() { fs::remove_all(folder); }
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;

  void add(const std::string& name, const std::string& text) {
    std::ofstream(folder / (name + ".exs"), std::ios::binary) << text;
    texts[name] = text;
  }

  void ask() {
    std::string command =
        "elixir '" + (golden / "oracle.exs").string() + "' '" + folder.string() + "' 2>/dev/null";
    std::FILE* pipe = ::popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string said;
    char buffer[4096];
    for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
      said.append(buffer, n);
    ASSERT_EQ(::pclose(pipe), 0) << said;
    std::istringstream lines(said);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string verdict;
      std::string name;
      std::string strings;
      words >> verdict >> name >> strings;
      opinions[name] = Opinion{verdict == "accepts", strings};
    }
    ASSERT_EQ(opinions.size(), texts.size());
  }

  fs::path folder;
  std::map<std::string, std::string> texts;
  std::map<std::string, Opinion> opinions;
};

std::string hex(std::string_view text) {
  std::string out;
  for (char c : text) {
    char pair[3];
    std::snprintf(pair, sizeof pair, "%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    out += pair;
  }
  return out;
}

void collect(const Argument& argument, std::string& out) {
  if (argument.value.is_string()) out += (out.empty() ? "" : ",") + hex(argument.value.text);
  for (const Argument& item : argument.value.items)
    collect(item, out);
}
void collect(const Block& block, std::string& out) {
  for (const Call& call : block.calls) {
    for (const Argument& argument : call.arguments)
      collect(argument, out);
    if (call.block) collect(*call.block, out);
  }
}
std::string strings_of(const std::string& text) {
  Report report;
  Source source(text, report);
  std::string out;
  collect(parse(source, report).file, out);
  return out;
}

/// One word of a valid file taken away, doubled, or swapped with the next.
void add_mutants(Oracle& oracle, const std::string& name, const std::string& text) {
  Report report;
  Source source(text, report);
  const std::string& clean = source.text();
  const auto tokens = lex(clean).tokens;
  auto piece = [&](std::size_t i) { return clean.substr(tokens[i].offset, tokens[i].length); };
  std::size_t stride = std::max<std::size_t>(1, tokens.size() / 25);
  for (std::size_t i = 0; i + 2 < tokens.size(); i += stride) {
    std::size_t begin = tokens[i].offset;
    std::size_t end = begin + tokens[i].length;
    std::string number = name + "-" + std::to_string(i);
    oracle.add(number + "-without", clean.substr(0, begin) + clean.substr(end));
    oracle.add(number + "-twice", clean.substr(0, end) + " " + piece(i) + clean.substr(end));
    std::size_t next_end = tokens[i + 1].offset + tokens[i + 1].length;
    oracle.add(number + "-swapped",
               clean.substr(0, begin) + piece(i + 1) + " " + piece(i) + clean.substr(next_end));
  }
}

TEST(Elixir, AgreesWithUs) {
  if (std::system("command -v elixir > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "elixir is not installed";
  Oracle oracle;
  for (const char* kind : {"valid", "broken"}) {
    for (const auto& entry : fs::directory_iterator(golden / "cluster_file" / kind)) {
      std::string name = std::string(kind) + "-" + entry.path().stem().string();
      if (entry.path().extension() == ".exs") oracle.add(name, read(entry.path()));
      if (entry.path().extension() == ".formatted")
        oracle.add(name + "-formatted", read(entry.path()));
      if (entry.path().extension() == ".exs" && name.starts_with("valid"))
        add_mutants(oracle, name, read(entry.path()));
    }
  }
  ASSERT_NO_FATAL_FAILURE(oracle.ask());

  std::size_t both_reject = 0;
  for (const auto& [name, text] : oracle.texts) {
    const Opinion& elixir = oracle.opinions[name];
    SCOPED_TRACE(name + ":\n" + text);
    bool accepted = format(text).text.has_value();
    // What we read, Elixir reads, and the strings in it are the same.
    if (accepted) {
      ASSERT_TRUE(elixir.accepts);
      ASSERT_EQ(strings_of(text), elixir.strings);
    }
    if (!accepted && !elixir.accepts) ++both_reject;
    Checked checked = check(text);
    if (!checked.cluster) continue;
    // What `mix format` makes of it means the same.
    for (const char* style : {".plain", ".parens"}) {
      std::string mixed = read(oracle.folder / (name + style));
      Checked again = check(mixed);
      ASSERT_TRUE(again.cluster) << mixed << render(again.diagnostics, name, mixed);
      ASSERT_EQ(again.cluster, checked.cluster) << mixed;
    }
  }
  EXPECT_GT(both_reject, 100U) << "the mutants no longer try anything";
}

}  // namespace
}  // namespace zed::spec
