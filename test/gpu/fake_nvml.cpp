// A libnvidia-ml.so.1 that plays a transcript (FAKE_NVML names the file): lines of
// "<device> <function> <code> <values…>", "-" for the machine, "<device>/<n>" for a MIG instance.
// A function that the transcript has nothing of answers NOT_SUPPORTED, as an old library does.

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "gpu/nvml_api.hpp"

namespace {

struct Answer {
  nvmlReturn_t code = NVML_ERROR_NOT_SUPPORTED;
  std::vector<std::string> values;
  unsigned long long number(std::size_t i) const {
    return i < values.size() ? std::strtoull(values[i].c_str(), nullptr, 10) : 0;
  }
};

using Transcript = std::map<std::string, std::map<std::string, Answer>>;

const Transcript& transcript() {
  static const Transcript played = [] {
    Transcript read;
    const char* path = std::getenv("FAKE_NVML");
    std::ifstream file(path != nullptr ? path : "");
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string device;
      std::string function;
      Answer answer;
      words >> device >> function >> answer.code;
      std::string rest;
      std::getline(words >> std::ws, rest);
      // A name is one value, blanks and all.
      bool is_text = function == "name" || function == "uuid" || function == "pci";
      std::istringstream numbers(rest);
      for (std::string value; !is_text && numbers >> value;)
        answer.values.push_back(value);
      if (is_text) answer.values.push_back(rest);
      read[device][function] = answer;
    }
    return read;
  }();
  return played;
}

Answer ask(const std::string& device, const char* function) {
  auto found = transcript().find(device);
  if (found == transcript().end()) return {};
  auto answer = found->second.find(function);
  return answer == found->second.end() ? Answer{} : answer->second;
}

// A handle is the address of the device's name, kept for good.
nvmlDevice_t handle_of(const std::string& device) {
  auto& names = *new std::string(device);
  return reinterpret_cast<nvmlDevice_t>(&names);
}
const std::string& name_of(nvmlDevice_t handle) {
  return *reinterpret_cast<const std::string*>(handle);
}

nvmlReturn_t text(nvmlDevice_t device, const char* what, char* buffer, unsigned size) {
  Answer answer = ask(name_of(device), what);
  if (answer.code != NVML_SUCCESS || answer.values.empty()) return answer.code;
  if (answer.values[0].size() >= size) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::strcpy(buffer, answer.values[0].c_str());
  return NVML_SUCCESS;
}

nvmlReturn_t open_device(const std::string& name, nvmlDevice_t* handle) {
  Answer answer = ask(name, "handle");
  if (answer.code == NVML_SUCCESS) *handle = handle_of(name);
  return answer.code;
}

}  // namespace

extern "C" {

nvmlReturn_t nvmlInit_v2() {
  return ask("-", "nvmlInit_v2").code;
}
nvmlReturn_t nvmlShutdown() {
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  Answer answer = ask("-", "nvmlDeviceGetCount_v2");
  *count = static_cast<unsigned>(answer.number(0));
  return answer.code;
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* handle) {
  return open_device(std::to_string(index), handle);
}
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t parent, unsigned index,
                                                 nvmlDevice_t* handle) {
  std::string name = name_of(parent) + "/" + std::to_string(index);
  if (transcript().count(name) == 0) return NVML_ERROR_NOT_FOUND;
  return open_device(name, handle);
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* buffer, unsigned size) {
  return text(device, "name", buffer, size);
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* buffer, unsigned size) {
  return text(device, "uuid", buffer, size);
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* info) {
  std::memset(info, 0, sizeof *info);
  return text(device, "pci", info->busId, sizeof info->busId);
}
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major, int* minor) {
  Answer answer = ask(name_of(device), "nvmlDeviceGetCudaComputeCapability");
  *major = static_cast<int>(answer.number(0));
  *minor = static_cast<int>(answer.number(1));
  return answer.code;
}
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned* current, unsigned* pending) {
  Answer answer = ask(name_of(device), "nvmlDeviceGetMigMode");
  *current = static_cast<unsigned>(answer.number(0));
  *pending = static_cast<unsigned>(answer.number(1));
  return answer.code;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  Answer answer = ask(name_of(device), "nvmlDeviceGetMemoryInfo");
  memory->total = answer.number(0);
  memory->free = answer.number(1);
  memory->used = answer.number(2);
  return answer.code;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  if (memory->version != nvml_memory_v2) return NVML_ERROR_INVALID_ARGUMENT;
  Answer answer = ask(name_of(device), "nvmlDeviceGetMemoryInfo_v2");
  memory->total = answer.number(0);
  memory->reserved = answer.number(1);
  memory->free = answer.number(2);
  memory->used = answer.number(3);
  return answer.code;
}
}
