#pragma once
// An ordered map as a value whose copies cost nothing: a balanced tree (AVL) of nodes that are
// never changed. A change makes the nodes on the way to it anew, O(log n), and shares all others
// with the copies, so that a catalog of thousands of datasets can be copied before each change.
// Iterators and references live as long as any copy of the map that they came from is unchanged.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace zed::store {

template <class Key, class T> class PersistentMap {
  struct Node;
  using Ref = std::shared_ptr<const Node>;

public:
  using value_type = std::pair<const Key, T>;

  /// In ascending order of keys.
  class const_iterator {
  public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = std::pair<const Key, T>;
    using difference_type = std::ptrdiff_t;
    using pointer = const value_type*;
    using reference = const value_type&;

    reference operator*() const { return path_.back()->item; }
    pointer operator->() const { return &path_.back()->item; }
    const_iterator& operator++() {
      const Node* next = path_.back()->right.get();
      path_.pop_back();
      descend(next);
      return *this;
    }
    const_iterator operator++(int) {
      const_iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const const_iterator& a, const const_iterator& b) {
      return a.top() == b.top();
    }

  private:
    friend class PersistentMap;
    const Node* top() const { return path_.empty() ? nullptr : path_.back(); }
    void descend(const Node* node) {
      for (; node != nullptr; node = node->left.get())
        path_.push_back(node);
    }
    std::vector<const Node*> path_;  ///< those whose item and right side are still to come
  };
  using iterator = const_iterator;

  const_iterator begin() const {
    const_iterator first;
    first.descend(root_.get());
    return first;
  }
  const_iterator end() const { return {}; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool contains(const Key& key) const { return find(key) != nullptr; }

  /// nullptr if it is not there.
  const T* find(const Key& key) const {
    const Node* node = root_.get();
    while (node != nullptr) {
      if (key < node->item.first)
        node = node->left.get();
      else if (node->item.first < key)
        node = node->right.get();
      else
        return &node->item.second;
    }
    return nullptr;
  }

  /// It is there.
  const T& at(const Key& key) const {
    const T* found = find(key);
    ZED_ASSERT(found != nullptr);
    return *found;
  }

  void insert_or_assign(const Key& key, T value) {
    bool added = false;
    root_ = put(root_, key, std::move(value), added);
    size_ += added ? 1 : 0;
  }
  /// Whether it was there.
  bool erase(const Key& key) {
    bool erased = false;
    root_ = without(root_, key, erased);
    size_ -= erased ? 1 : 0;
    return erased;
  }
  void clear() {
    root_.reset();
    size_ = 0;
  }
  /// Steps from the root to the furthest item: at most 1.44 log2(size + 2).
  int depth() const { return height(root_); }

private:
  struct Node {
    Node(value_type item_, Ref left_, Ref right_)
        : item(std::move(item_)), left(std::move(left_)), right(std::move(right_)),
          depth(1 + std::max(height(left), height(right))) {}
    value_type item;
    Ref left;
    Ref right;
    int depth;
  };

  static int height(const Ref& node) { return node ? node->depth : 0; }
  static Ref make(value_type item, Ref left, Ref right) {
    return std::make_shared<const Node>(std::move(item), std::move(left), std::move(right));
  }

  /// A node of these; the sides' heights differ by at most two.
  static Ref balanced(value_type item, Ref left, Ref right) {
    if (height(left) > height(right) + 1) {
      if (height(left->left) >= height(left->right))
        return make(left->item, left->left, make(std::move(item), left->right, std::move(right)));
      const Ref& middle = left->right;
      return make(middle->item, make(left->item, left->left, middle->left),
                  make(std::move(item), middle->right, std::move(right)));
    }
    if (height(right) > height(left) + 1) {
      if (height(right->right) >= height(right->left))
        return make(right->item, make(std::move(item), std::move(left), right->left), right->right);
      const Ref& middle = right->left;
      return make(middle->item, make(std::move(item), std::move(left), middle->left),
                  make(right->item, middle->right, right->right));
    }
    return make(std::move(item), std::move(left), std::move(right));
  }

  static Ref put(const Ref& node, const Key& key, T value, bool& added) {
    if (!node) {
      added = true;
      return make({key, std::move(value)}, nullptr, nullptr);
    }
    if (key < node->item.first)
      return balanced(node->item, put(node->left, key, std::move(value), added), node->right);
    if (node->item.first < key)
      return balanced(node->item, node->left, put(node->right, key, std::move(value), added));
    return make({key, std::move(value)}, node->left, node->right);
  }

  static const Node& first_of(const Node& node) { return node.left ? first_of(*node.left) : node; }

  static Ref without(const Ref& node, const Key& key, bool& erased) {
    if (!node) return nullptr;
    if (key < node->item.first)
      return balanced(node->item, without(node->left, key, erased), node->right);
    if (node->item.first < key)
      return balanced(node->item, node->left, without(node->right, key, erased));
    erased = true;
    if (!node->left) return node->right;
    if (!node->right) return node->left;
    const Node& next = first_of(*node->right);
    bool moved = false;
    return balanced(next.item, node->left, without(node->right, next.item.first, moved));
  }

  Ref root_;
  std::size_t size_ = 0;
};

}  // namespace zed::store
