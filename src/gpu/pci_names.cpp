#include "gpu/pci_names.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace zed::gpu {
namespace {

struct Named {
  std::string_view id;
  std::string_view name;
};

// Cards that machines of a small fleet have; pci.ids knows the rest.
constexpr std::array named{
    Named{"1002:1318", "AMD Radeon Graphics"},
    Named{"1002:13c0", "AMD Radeon Graphics"},
    Named{"1002:1506", "AMD Radeon 610M"},
    Named{"1002:150e", "AMD Radeon 890M"},
    Named{"1002:1586", "AMD Radeon 8060S"},
    Named{"1002:15bf", "AMD Radeon 780M"},
    Named{"1002:164e", "AMD Radeon Graphics"},
    Named{"1002:1681", "AMD Radeon 680M"},
    Named{"1002:1900", "AMD Radeon 780M"},
    Named{"1002:66a1", "AMD Instinct MI50"},
    Named{"1002:731f", "AMD Radeon RX 5700 XT"},
    Named{"1002:7340", "AMD Radeon RX 5500M"},
    Named{"1002:738c", "AMD Instinct MI100"},
    Named{"1002:73a5", "AMD Radeon RX 6950 XT"},
    Named{"1002:73bf", "AMD Radeon RX 6800 XT"},
    Named{"1002:73df", "AMD Radeon RX 6700 XT"},
    Named{"1002:73ff", "AMD Radeon RX 6600"},
    Named{"1002:7408", "AMD Instinct MI250X"},
    Named{"1002:740c", "AMD Instinct MI250"},
    Named{"1002:740f", "AMD Instinct MI210"},
    Named{"1002:7448", "AMD Radeon PRO W7900"},
    Named{"1002:744c", "AMD Radeon RX 7900 XTX"},
    Named{"1002:745e", "AMD Radeon PRO W7800"},
    Named{"1002:747e", "AMD Radeon RX 7800 XT"},
    Named{"1002:7480", "AMD Radeon RX 7600"},
    Named{"1002:74a0", "AMD Instinct MI300A"},
    Named{"1002:74a1", "AMD Instinct MI300X"},
    Named{"1002:74a5", "AMD Instinct MI325X"},
    Named{"1002:75a0", "AMD Instinct MI350X"},
    Named{"1002:7550", "AMD Radeon RX 9070 XT"},
    Named{"1002:7551", "AMD Radeon AI PRO R9700"},
    Named{"1002:7590", "AMD Radeon RX 9060 XT"},
    Named{"10de:102d", "NVIDIA Tesla K80"},
    Named{"10de:15f8", "NVIDIA Tesla P100-PCIE-16GB"},
    Named{"10de:1b06", "NVIDIA GeForce GTX 1080 Ti"},
    Named{"10de:1b38", "NVIDIA Tesla P40"},
    Named{"10de:1b80", "NVIDIA GeForce GTX 1080"},
    Named{"10de:1bb3", "NVIDIA Tesla P4"},
    Named{"10de:1c03", "NVIDIA GeForce GTX 1060 6GB"},
    Named{"10de:1db1", "NVIDIA Tesla V100-SXM2-16GB"},
    Named{"10de:1db4", "NVIDIA Tesla V100-PCIE-16GB"},
    Named{"10de:1db5", "NVIDIA Tesla V100-SXM2-32GB"},
    Named{"10de:1db6", "NVIDIA Tesla V100-PCIE-32GB"},
    Named{"10de:1e02", "NVIDIA TITAN RTX"},
    Named{"10de:1e04", "NVIDIA GeForce RTX 2080 Ti"},
    Named{"10de:1e07", "NVIDIA GeForce RTX 2080 Ti"},
    Named{"10de:1e30", "NVIDIA Quadro RTX 6000"},
    Named{"10de:1e82", "NVIDIA GeForce RTX 2080"},
    Named{"10de:1eb8", "NVIDIA Tesla T4"},
    Named{"10de:1f08", "NVIDIA GeForce RTX 2060"},
    Named{"10de:20b0", "NVIDIA A100-SXM4-40GB"},
    Named{"10de:20b2", "NVIDIA A100-SXM4-80GB"},
    Named{"10de:20b5", "NVIDIA A100 80GB PCIe"},
    Named{"10de:20b7", "NVIDIA A30"},
    Named{"10de:20f1", "NVIDIA A100-PCIE-40GB"},
    Named{"10de:2203", "NVIDIA GeForce RTX 3090 Ti"},
    Named{"10de:2204", "NVIDIA GeForce RTX 3090"},
    Named{"10de:2206", "NVIDIA GeForce RTX 3080"},
    Named{"10de:2208", "NVIDIA GeForce RTX 3080 Ti"},
    Named{"10de:2230", "NVIDIA RTX A6000"},
    Named{"10de:2231", "NVIDIA RTX A5000"},
    Named{"10de:2235", "NVIDIA A40"},
    Named{"10de:2236", "NVIDIA A10"},
    Named{"10de:2237", "NVIDIA A10G"},
    Named{"10de:2321", "NVIDIA H100 NVL"},
    Named{"10de:2330", "NVIDIA H100 80GB HBM3"},
    Named{"10de:2331", "NVIDIA H100 PCIe"},
    Named{"10de:2335", "NVIDIA H200"},
    Named{"10de:2342", "NVIDIA GH200 480GB"},
    Named{"10de:2482", "NVIDIA GeForce RTX 3070 Ti"},
    Named{"10de:2484", "NVIDIA GeForce RTX 3070"},
    Named{"10de:2486", "NVIDIA GeForce RTX 3060 Ti"},
    Named{"10de:2503", "NVIDIA GeForce RTX 3060"},
    Named{"10de:2504", "NVIDIA GeForce RTX 3060"},
    Named{"10de:2684", "NVIDIA GeForce RTX 4090"},
    Named{"10de:2685", "NVIDIA GeForce RTX 4090 D"},
    Named{"10de:26b1", "NVIDIA RTX 6000 Ada Generation"},
    Named{"10de:26b5", "NVIDIA L40"},
    Named{"10de:26b9", "NVIDIA L40S"},
    Named{"10de:2702", "NVIDIA GeForce RTX 4080 SUPER"},
    Named{"10de:2704", "NVIDIA GeForce RTX 4080"},
    Named{"10de:2705", "NVIDIA GeForce RTX 4070 Ti SUPER"},
    Named{"10de:2717", "NVIDIA GeForce RTX 4090 Laptop GPU"},
    Named{"10de:2757", "NVIDIA GeForce RTX 4090 Laptop GPU"},
    Named{"10de:2782", "NVIDIA GeForce RTX 4070 Ti"},
    Named{"10de:2786", "NVIDIA GeForce RTX 4070"},
    Named{"10de:27b8", "NVIDIA L4"},
    Named{"10de:27e0", "NVIDIA GeForce RTX 4080 Laptop GPU"},
    Named{"10de:2803", "NVIDIA GeForce RTX 4060 Ti"},
    Named{"10de:2820", "NVIDIA GeForce RTX 4070 Laptop GPU"},
    Named{"10de:2860", "NVIDIA GeForce RTX 4070 Laptop GPU"},
    Named{"10de:2882", "NVIDIA GeForce RTX 4060"},
    Named{"10de:28a0", "NVIDIA GeForce RTX 4060 Laptop GPU"},
    Named{"10de:28e0", "NVIDIA GeForce RTX 4060 Laptop GPU"},
    Named{"10de:2901", "NVIDIA B200"},
    Named{"10de:2b85", "NVIDIA GeForce RTX 5090"},
    Named{"10de:2bb1", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"},
    Named{"10de:2c02", "NVIDIA GeForce RTX 5080"},
    Named{"10de:2c05", "NVIDIA GeForce RTX 5070 Ti"},
    Named{"10de:2f04", "NVIDIA GeForce RTX 5070"},
    Named{"8086:3e9b", "Intel UHD Graphics 630"},
    Named{"8086:4680", "Intel UHD Graphics 770"},
    Named{"8086:46a6", "Intel Iris Xe Graphics"},
    Named{"8086:56a0", "Intel Arc A770"},
    Named{"8086:56a1", "Intel Arc A750"},
    Named{"8086:56a5", "Intel Arc A380"},
    Named{"8086:56a6", "Intel Arc A310"},
    Named{"8086:56c0", "Intel Data Center GPU Flex 170"},
    Named{"8086:64a0", "Intel Arc Graphics 130V/140V"},
    Named{"8086:7d55", "Intel Arc Graphics"},
    Named{"8086:9a49", "Intel Iris Xe Graphics"},
    Named{"8086:a780", "Intel UHD Graphics 770"},
    Named{"8086:a7a0", "Intel Iris Xe Graphics"},
    Named{"8086:0bd5", "Intel Data Center GPU Max 1550"},
    Named{"8086:0bda", "Intel Data Center GPU Max 1100"},
    Named{"8086:e20b", "Intel Arc B580"},
    Named{"8086:e20c", "Intel Arc B570"},
    Named{"8086:e210", "Intel Arc Pro B60"},
    Named{"8086:e211", "Intel Arc Pro B60"},
    Named{"8086:e212", "Intel Arc Pro B50"},
};

/// "GeForce RTX 3060" of "GA106 [GeForce RTX 3060 Lite Hash Rate]".
std::string_view in_brackets(std::string_view name) {
  std::size_t open = name.find('[');
  std::size_t close = name.rfind(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open + 2)
    return name;
  return name.substr(open + 1, close - open - 1);
}

}  // namespace

std::string_view name_of_pci_id(std::string_view pci_id) {
  auto found = std::find_if(named.begin(), named.end(),
                            [&](const Named& entry) { return entry.id == pci_id; });
  return found == named.end() ? std::string_view() : found->name;
}

// "10de  NVIDIA Corporation", then "\t2504  GA106 […]", then "\t\t<subsystem>".
std::string name_in_pci_ids(std::string_view file, std::string_view pci_id) {
  if (pci_id.size() != 9) return {};
  const std::string vendor = "\n" + std::string(pci_id.substr(0, 4)) + "  ";
  std::size_t at = file.find(vendor);
  if (at == std::string_view::npos) return {};
  const std::string device = "\t" + std::string(pci_id.substr(5)) + "  ";
  while (true) {
    at = file.find('\n', at + 1);
    if (at == std::string_view::npos) return {};
    std::string_view line = file.substr(at + 1, file.find('\n', at + 1) - at - 1);
    if (!line.starts_with('\t') && !line.starts_with('#')) return {};
    if (!line.starts_with(device)) continue;
    std::string name(in_brackets(trim(line.substr(device.size()))));
    return std::string(vendor_word(vendor_of_pci_id(pci_id))) + " " + name.substr(0, 120);
  }
}

GpuVendor vendor_of_pci_id(std::string_view pci_id) {
  if (pci_id.starts_with("10de:")) return GpuVendor::nvidia;
  if (pci_id.starts_with("1002:")) return GpuVendor::amd;
  if (pci_id.starts_with("8086:")) return GpuVendor::intel;
  return GpuVendor::other;
}

std::string_view vendor_word(GpuVendor vendor) {
  switch (vendor) {
  case GpuVendor::nvidia: return "NVIDIA";
  case GpuVendor::amd: return "AMD";
  case GpuVendor::intel: return "Intel";
  case GpuVendor::apple: return "Apple";
  case GpuVendor::simulated: return "simulated";
  case GpuVendor::other: return "unknown";
  }
  return "unknown";
}

bool is_integrated_intel(std::string_view bus_id) {
  return bus_id == "0000:00:02.0";
}

}  // namespace zed::gpu
