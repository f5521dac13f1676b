// Thrust on the CPU: vectors, iterators, function objects and algorithms, which the emulator runs one element after another.
//
// Memory of the device is memory of this computer, so references to elements are plain references.
#pragma once
#include <host_access.h>
#include <algorithm>
#include <chrono>
#include <complex>
#include <cuda_runtime.h>
#include <functional>
#include <iostream>  // programs rely on it
#include <iterator>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#define THRUST_VERSION 200800
#define THRUST_MAJOR_VERSION 2
#define THRUST_MINOR_VERSION 8
#define THRUST_SUBMINOR_VERSION 0

namespace thrust {
// --- tuples, pairs, complex numbers, random numbers --------------------------------------------------------------------------
using std::abs;
using std::arg;
using std::complex;
using std::conj;
using std::get;
using std::make_pair;
using std::make_tuple;
using std::norm;
using std::pair;
using std::polar;
using std::swap;
using std::tie;
using std::tuple;
using std::tuple_element;
using std::tuple_size;
struct minstd_rand : std::minstd_rand {
  using std::minstd_rand::minstd_rand;
};
typedef minstd_rand default_random_engine;
namespace random {
using std::normal_distribution;
using std::uniform_int_distribution;
using std::uniform_real_distribution;
using thrust::default_random_engine;
using thrust::minstd_rand;
}  // namespace random
using std::normal_distribution;
using std::uniform_int_distribution;
using std::uniform_real_distribution;

// --- execution policies: all run on the CPU, at once -------------------------------------------------------------------------
namespace details {
struct Policy {
  template <class S>
  Policy on(S) const {
    return {};
  }
  template <class A>
  Policy operator()(A&&) const {
    return {};
  }
};
template <class P>
constexpr bool is_policy = std::is_base_of_v<Policy, std::remove_cv_t<std::remove_reference_t<P>>>;
}  // namespace details
struct host_execution_policy : details::Policy {};
struct device_execution_policy : details::Policy {};
struct host_system_tag : details::Policy {};
struct device_system_tag : details::Policy {};
template <class T>
struct execution_policy : details::Policy {};
inline constexpr device_execution_policy device;
inline constexpr host_execution_policy host, seq;
namespace cuda {
inline constexpr device_execution_policy par, par_nosync;
using tag = device_system_tag;
template <class T>
using execution_policy = thrust::execution_policy<T>;
}  // namespace cuda
namespace omp {
inline constexpr host_execution_policy par;
}
namespace system {
namespace cuda = thrust::cuda;
}

// --- pointers and vectors ----------------------------------------------------------------------------------------------------
template <class T>
class device_ptr {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = std::remove_cv_t<T>;
  using difference_type = std::ptrdiff_t;
  using pointer = T*;
  using reference = std::add_lvalue_reference_t<T>;

  device_ptr(std::nullptr_t = nullptr) : pointer_(nullptr) {}
  explicit device_ptr(T* place) : pointer_(place) {}
  template <class U, class = std::enable_if_t<std::is_convertible_v<U*, T*>>>
  device_ptr(const device_ptr<U>& other) : pointer_(other.get()) {}

  T* get() const { return pointer_; }
  reference operator*() const { return *pointer_; }
  T* operator->() const { return pointer_; }
  reference operator[](difference_type i) const { return pointer_[i]; }
  explicit operator bool() const { return pointer_ != nullptr; }
  device_ptr& operator++() { return ++pointer_, *this; }
  device_ptr& operator--() { return --pointer_, *this; }
  device_ptr operator++(int) { return device_ptr(pointer_++); }
  device_ptr operator--(int) { return device_ptr(pointer_--); }
  device_ptr& operator+=(difference_type n) { return pointer_ += n, *this; }
  device_ptr& operator-=(difference_type n) { return pointer_ -= n, *this; }
  friend device_ptr operator+(device_ptr a, difference_type n) { return device_ptr(a.pointer_ + n); }
  friend device_ptr operator+(difference_type n, device_ptr a) { return device_ptr(a.pointer_ + n); }
  friend device_ptr operator-(device_ptr a, difference_type n) { return device_ptr(a.pointer_ - n); }
  friend difference_type operator-(device_ptr a, device_ptr b) { return a.pointer_ - b.pointer_; }
  friend bool operator==(device_ptr a, device_ptr b) { return a.pointer_ == b.pointer_; }
  friend bool operator!=(device_ptr a, device_ptr b) { return a.pointer_ != b.pointer_; }
  friend bool operator<(device_ptr a, device_ptr b) { return a.pointer_ < b.pointer_; }
  friend bool operator>(device_ptr a, device_ptr b) { return b < a; }
  friend bool operator<=(device_ptr a, device_ptr b) { return !(b < a); }
  friend bool operator>=(device_ptr a, device_ptr b) { return !(a < b); }

 private:
  T* pointer_;
};
template <class T>
using device_reference = T&;
template <class T>
device_ptr<T> device_pointer_cast(T* pointer) {
  return device_ptr<T>(pointer);
}
template <class T>
device_ptr<T> device_pointer_cast(device_ptr<T> pointer) {
  return pointer;
}
template <class T>
T* raw_pointer_cast(T* pointer) {
  return pointer;
}
template <class T>
T* raw_pointer_cast(device_ptr<T> pointer) {
  return pointer.get();
}
template <class T>
T& raw_reference_cast(T& reference) {
  return reference;
}
template <class T>
device_ptr<T> device_malloc(size_t count) {
  void* pointer = nullptr;
  if (emulator::allocate(&pointer, count * sizeof(T)) != cudaSuccess) throw std::bad_alloc();
  emulator::reach_from_library(pointer, count * sizeof(T), true);
  return device_ptr<T>(static_cast<T*>(pointer));
}
template <class T>
void device_free(device_ptr<T> pointer) {
  cudaFree(const_cast<std::remove_cv_t<T>*>(pointer.get()));
}

// Makes std::vector allocate memory of the device.
template <class T>
struct device_allocator {
  using value_type = T;
  device_allocator() = default;
  template <class U>
  device_allocator(const device_allocator<U>&) {}
  T* allocate(size_t count) { return device_malloc<T>(count).get(); }
  void deallocate(T* pointer, size_t) { cudaFree(pointer); }
  friend bool operator==(device_allocator, device_allocator) { return true; }
  friend bool operator!=(device_allocator, device_allocator) { return false; }
};
template <class T>
using device_malloc_allocator = device_allocator<T>;

template <class T, class A = std::allocator<T>>
class host_vector : public std::vector<T, A> {
  using Base = std::vector<T, A>;

 public:
  using Base::Base;
  host_vector() = default;
  template <class B>
  host_vector(const std::vector<T, B>& other) : Base(other.begin(), other.end()) {}
  template <class B>
  host_vector& operator=(const std::vector<T, B>& other) {
    this->assign(other.begin(), other.end());
    return *this;
  }
};
template <class T, class A = device_allocator<T>>
class device_vector : public std::vector<T, A> {
  using Base = std::vector<T, A>;

 public:
  using pointer = device_ptr<T>;
  using iterator = device_ptr<T>;
  using const_iterator = device_ptr<const T>;
  using Base::Base;
  device_vector() = default;
  template <class B>
  device_vector(const std::vector<T, B>& other) : Base(other.begin(), other.end()) {}
  template <class U, class B>
  explicit device_vector(const std::vector<U, B>& other) : Base(other.begin(), other.end()) {}
  template <class B>
  device_vector& operator=(const std::vector<T, B>& other) {
    this->assign(other.begin(), other.end());
    return *this;
  }

  iterator begin() { return iterator(Base::data()); }
  iterator end() { return begin() + std::ptrdiff_t(this->size()); }
  const_iterator begin() const { return const_iterator(Base::data()); }
  const_iterator end() const { return begin() + std::ptrdiff_t(this->size()); }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }
  std::reverse_iterator<iterator> rbegin() { return std::reverse_iterator<iterator>(end()); }
  std::reverse_iterator<iterator> rend() { return std::reverse_iterator<iterator>(begin()); }
  pointer data() { return begin(); }
  const_iterator data() const { return begin(); }
  iterator erase(iterator first, iterator last) {
    const auto place = Base::erase(Base::begin() + (first - begin()), Base::begin() + (last - begin()));
    return begin() + (place - Base::begin());
  }
  iterator erase(iterator place) { return erase(place, place + 1); }
  template <class I>
  void insert(iterator place, I first, I last) {
    Base::insert(Base::begin() + (place - begin()), first, last);
  }
};
template <class T>
using universal_vector = device_vector<T>;

// --- function objects --------------------------------------------------------------------------------------------------------
template <class A, class R>
struct unary_function {
  using argument_type = A;
  using result_type = R;
};
template <class A, class B, class R>
struct binary_function {
  using first_argument_type = A;
  using second_argument_type = B;
  using result_type = R;
};
using std::bit_and;
using std::bit_or;
using std::bit_xor;
using std::divides;
using std::equal_to;
using std::greater;
using std::greater_equal;
using std::less;
using std::less_equal;
using std::logical_and;
using std::logical_not;
using std::logical_or;
using std::minus;
using std::modulus;
using std::multiplies;
using std::negate;
using std::not_equal_to;
using std::plus;
namespace details {
template <class T, class A, class B>
using Common = typename std::conditional_t<std::is_void_v<T>, std::common_type<A, B>, std::enable_if<true, T>>::type;
}
template <class T = void>
struct maximum {
  template <class A, class B>
  auto operator()(const A& a, const B& b) const {
    return std::max<details::Common<T, A, B>>(a, b);
  }
};
template <class T = void>
struct minimum {
  template <class A, class B>
  auto operator()(const A& a, const B& b) const {
    return std::min<details::Common<T, A, B>>(a, b);
  }
};
template <class T = void>
struct identity {
  template <class U>
  U operator()(const U& a) const {
    return a;
  }
};
template <class T = void>
struct square {
  template <class U>
  U operator()(const U& a) const {
    return a * a;
  }
};
template <class F>
auto not1(F function) {
  return [=](const auto& a) { return !function(a); };
}

// `_1 * 2 + _2` as a function.
namespace placeholders {
template <class F>
struct Expression {
  F compute;
  template <class... A>
  auto operator()(const A&... values) const {
    return compute(values...);
  }
};
template <class F>
Expression<F> express(F compute) {
  return {compute};
}
template <class T>
auto evaluate(const T& constant) {
  return [=](const auto&...) { return constant; };
}
template <class F>
auto evaluate(const Expression<F>& expression) {
  return expression;
}
template <class T>
struct IsExpression : std::false_type {};
template <class F>
struct IsExpression<Expression<F>> : std::true_type {};
#define EMULATOR_PLACEHOLDER(OPERATOR)                                                                    \
  template <class A, class B, class = std::enable_if_t<IsExpression<A>::value || IsExpression<B>::value>> \
  auto operator OPERATOR(const A& a, const B& b) {                                                        \
    const auto left = evaluate(a);                                                                        \
    const auto right = evaluate(b);                                                                       \
    return express([=](const auto&... values) { return left(values...) OPERATOR right(values...); });     \
  }
EMULATOR_PLACEHOLDER(+)
EMULATOR_PLACEHOLDER(-)
EMULATOR_PLACEHOLDER(*)
EMULATOR_PLACEHOLDER(/)
EMULATOR_PLACEHOLDER(%)
EMULATOR_PLACEHOLDER(<)
EMULATOR_PLACEHOLDER(>)
EMULATOR_PLACEHOLDER(<=)
EMULATOR_PLACEHOLDER(>=)
EMULATOR_PLACEHOLDER(==)
EMULATOR_PLACEHOLDER(!=)
EMULATOR_PLACEHOLDER(&&)
EMULATOR_PLACEHOLDER(||)
#undef EMULATOR_PLACEHOLDER
inline const auto _1 = express([](const auto& first, const auto&...) { return first; });
inline const auto _2 = express([](const auto&, const auto& second, const auto&...) { return second; });
}  // namespace placeholders

// --- iterators ---------------------------------------------------------------------------------------------------------------
namespace details {
// An iterator that derives its element from a position. `Self` has get(place).
template <class Self, class Reference, class Value>
class Positioned {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = Value;
  using difference_type = std::ptrdiff_t;
  using pointer = Value*;
  using reference = Reference;

  Reference operator*() const { return self().get(position_); }
  Reference operator[](difference_type i) const { return self().get(position_ + i); }
  Self& operator++() { return ++position_, self(); }
  Self& operator--() { return --position_, self(); }
  Self operator++(int) {
    const Self old = self();
    return ++position_, old;
  }
  Self operator--(int) {
    const Self old = self();
    return --position_, old;
  }
  Self& operator+=(difference_type n) { return position_ += n, self(); }
  Self& operator-=(difference_type n) { return position_ -= n, self(); }
  friend Self operator+(Self a, difference_type n) { return a += n; }
  friend Self operator+(difference_type n, Self a) { return a += n; }
  friend Self operator-(Self a, difference_type n) { return a -= n; }
  friend difference_type operator-(const Self& a, const Self& b) { return a.offset() - b.offset(); }
  friend bool operator==(const Self& a, const Self& b) { return a.offset() == b.offset(); }
  friend bool operator!=(const Self& a, const Self& b) { return a.offset() != b.offset(); }
  friend bool operator<(const Self& a, const Self& b) { return a.offset() < b.offset(); }
  friend bool operator>(const Self& a, const Self& b) { return b < a; }
  friend bool operator<=(const Self& a, const Self& b) { return !(b < a); }
  friend bool operator>=(const Self& a, const Self& b) { return !(a < b); }
  difference_type position() const { return position_; }

 private:
  Self& self() { return static_cast<Self&>(*this); }
  const Self& self() const { return static_cast<const Self&>(*this); }
  difference_type position_ = 0;
};
template <class I>
using ValueOf = typename std::iterator_traits<I>::value_type;
template <class I>
using ReferenceOf = typename std::iterator_traits<I>::reference;
template <class I, class = void>
constexpr bool HAS_OFFSET = false;
template <class I>
constexpr bool HAS_OFFSET<I, std::void_t<decltype(std::declval<const I&>().offset())>> = true;
template <class I>
std::ptrdiff_t offset_of(const I& iterator) {  // relative to some origin: only differences count
  if constexpr (std::is_pointer_v<I>)
    return reinterpret_cast<std::ptrdiff_t>(iterator) / std::ptrdiff_t(sizeof(*iterator));
  else if constexpr (HAS_OFFSET<I>)
    return iterator.offset();
  else
    return iterator - I{};
}
template <class T>
struct Discarded {
  template <class U>
  const Discarded& operator=(const U&) const {
    return *this;
  }
};
}  // namespace details

template <class T, class = void, class = void, class = void>
class counting_iterator : public details::Positioned<counting_iterator<T>, T, T> {
 public:
  explicit counting_iterator(T first = T()) : first_(first) {}
  T get(std::ptrdiff_t place) const { return T(first_ + T(place)); }
  std::ptrdiff_t offset() const { return std::ptrdiff_t(first_) + this->position(); }

 private:
  T first_;
};
template <class T>
counting_iterator<T> make_counting_iterator(T first) {
  return counting_iterator<T>(first);
}
template <class T>
class constant_iterator : public details::Positioned<constant_iterator<T>, T, T> {
 public:
  explicit constant_iterator(T value = T(), std::ptrdiff_t first = 0) : value_(value), first_(first) {}
  T get(std::ptrdiff_t) const { return value_; }
  std::ptrdiff_t offset() const { return first_ + this->position(); }

 private:
  T value_;
  std::ptrdiff_t first_;
};
template <class T>
constant_iterator<T> make_constant_iterator(T value, std::ptrdiff_t first = 0) {
  return constant_iterator<T>(value, first);
}
template <class = void>
class discard_iterator : public details::Positioned<discard_iterator<>, details::Discarded<void>, details::Discarded<void>> {
 public:
  details::Discarded<void> get(std::ptrdiff_t) const { return {}; }
  std::ptrdiff_t offset() const { return this->position(); }
};
inline discard_iterator<> make_discard_iterator() { return {}; }

template <class F, class I, class = void, class = void>
class transform_iterator
    : public details::Positioned<transform_iterator<F, I>, std::invoke_result_t<const F&, details::ReferenceOf<I>>,
                                 std::decay_t<std::invoke_result_t<const F&, details::ReferenceOf<I>>>> {
 public:
  explicit transform_iterator(I base, F function = F()) : base_(base), function_(function) {}
  decltype(auto) get(std::ptrdiff_t place) const { return function_(base_[place]); }
  std::ptrdiff_t offset() const { return details::offset_of(base_) + this->position(); }

 private:
  I base_;
  F function_;
};
template <class F, class I>
transform_iterator<F, I> make_transform_iterator(I base, F function) {
  return transform_iterator<F, I>(base, function);
}
template <class I, class P>
class permutation_iterator
    : public details::Positioned<permutation_iterator<I, P>, details::ReferenceOf<I>, details::ValueOf<I>> {
 public:
  permutation_iterator(I base, P places) : base_(base), places_(places) {}
  decltype(auto) get(std::ptrdiff_t place) const { return base_[std::ptrdiff_t(places_[place])]; }
  std::ptrdiff_t offset() const { return details::offset_of(places_) + this->position(); }

 private:
  I base_;
  P places_;
};
template <class I, class P>
permutation_iterator<I, P> make_permutation_iterator(I base, P places) {
  return {base, places};
}
template <class Iterators>
class zip_iterator;
template <class... I>
class zip_iterator<std::tuple<I...>>
    : public details::Positioned<zip_iterator<std::tuple<I...>>, std::tuple<details::ReferenceOf<I>...>,
                                 std::tuple<details::ValueOf<I>...>> {
 public:
  explicit zip_iterator(std::tuple<I...> bases) : bases_(bases) {}
  std::tuple<details::ReferenceOf<I>...> get(std::ptrdiff_t place) const {
    return std::apply([=](const I&... base) { return std::tuple<details::ReferenceOf<I>...>(base[place]...); }, bases_);
  }
  std::ptrdiff_t offset() const { return details::offset_of(std::get<0>(bases_)) + this->position(); }

 private:
  std::tuple<I...> bases_;
};
template <class... I>
zip_iterator<std::tuple<I...>> make_zip_iterator(std::tuple<I...> bases) {
  return zip_iterator<std::tuple<I...>>(bases);
}
template <class... I>
zip_iterator<std::tuple<I...>> make_zip_iterator(I... bases) {
  return zip_iterator<std::tuple<I...>>(std::tuple<I...>(bases...));
}
template <class F>
auto make_zip_function(F function) {
  return [=](auto&& values) { return std::apply(function, values); };
}
using std::make_reverse_iterator;
using std::reverse_iterator;
template <class I>
using iterator_value = std::iterator_traits<I>;
template <class I>
struct iterator_difference {
  using type = std::ptrdiff_t;
};
using std::advance;
using std::distance;
using std::next;

// --- algorithms --------------------------------------------------------------------------------------------------------------
namespace algorithms {
using details::ValueOf;
using std::adjacent_difference;
using std::all_of;
using std::any_of;
using std::binary_search;
using std::copy;
using std::copy_n;
using std::count;
using std::count_if;
using std::equal;
using std::fill;
using std::fill_n;
using std::find;
using std::find_if;
using std::find_if_not;
using std::generate;
using std::generate_n;
using std::inner_product;
using std::is_partitioned;
using std::is_sorted;
using std::is_sorted_until;
using std::max_element;
using std::merge;
using std::min_element;
using std::minmax_element;
using std::mismatch;
using std::none_of;
using std::partition_copy;
using std::remove;
using std::remove_copy;
using std::remove_copy_if;
using std::remove_if;
using std::replace;
using std::replace_copy;
using std::replace_if;
using std::reverse;
using std::reverse_copy;
using std::set_difference;
using std::set_intersection;
using std::set_symmetric_difference;
using std::set_union;
using std::sort;
using std::stable_partition;
using std::stable_sort;
using std::swap_ranges;
using std::unique;
using std::unique_copy;

template <class I, class F>
I for_each(I first, I last, F function) {
  for (; first != last; ++first) function(*first);
  return first;
}
template <class I, class N, class F>
I for_each_n(I first, N count, F function) {
  return algorithms::for_each(first, first + std::ptrdiff_t(count), function);
}
template <class I, class P>
I partition(I first, I last, P predicate) {
  return std::stable_partition(first, last, predicate);
}
template <class I, class T = ValueOf<I>, class F = std::plus<>>
T reduce(I first, I last, T sum = T(), F function = {}) {
  for (; first != last; ++first) sum = function(sum, *first);
  return sum;
}
template <class I, class U, class T, class F>
T transform_reduce(I first, I last, U change, T sum, F function) {
  for (; first != last; ++first) sum = function(sum, change(*first));
  return sum;
}
template <class I, class O, class F>
O transform(I first, I last, O out, F function) {
  for (; first != last; ++first, ++out) *out = function(*first);
  return out;
}
template <class I, class J, class O, class F>
O transform(I first, I last, J second, O out, F function) {
  for (; first != last; ++first, ++second, ++out) *out = function(*first, *second);
  return out;
}
template <class I, class O, class F, class P>
auto transform_if(I first, I last, O out, F function, P predicate) -> decltype(predicate(*first), out) {
  for (; first != last; ++first, ++out)
    if (predicate(*first)) *out = function(*first);
  return out;
}
template <class I, class S, class O, class F, class P>
O transform_if(I first, I last, S stencil, O out, F function, P predicate) {
  for (; first != last; ++first, ++out, ++stencil)
    if (predicate(*stencil)) *out = function(*first);
  return out;
}
template <class I, class T = ValueOf<I>>
void sequence(I first, I last, T value = T(0), T step = T(1)) {
  for (; first != last; ++first, value = T(value + step)) *first = value;
}
template <class I, class F>
void tabulate(I first, I last, F function) {
  for (std::ptrdiff_t i = 0; first != last; ++first, ++i) *first = function(i);
}
template <class I, class O, class P>
O copy_if(I first, I last, O out, P predicate) {
  return std::copy_if(first, last, out, predicate);
}
template <class I, class S, class O, class P>
O copy_if(I first, I last, S stencil, O out, P predicate) {
  for (; first != last; ++first, ++stencil)
    if (predicate(*stencil)) *out++ = *first;
  return out;
}
template <class I, class O, class F = std::plus<>>
O inclusive_scan(I first, I last, O out, F function = {}) {
  if (first == last) return out;
  ValueOf<I> sum = *first;
  *out++ = sum;
  for (++first; first != last; ++first) *out++ = sum = function(sum, *first);
  return out;
}
template <class I, class O, class T = ValueOf<I>, class F = std::plus<>>
O exclusive_scan(I first, I last, O out, T sum = T(0), F function = {}) {
  for (; first != last; ++first) {
    const T next = function(sum, *first);  // read before the write, which may replace it
    *out++ = sum;
    sum = next;
  }
  return out;
}
template <class I, class O, class U, class F>
O transform_inclusive_scan(I first, I last, O out, U change, F function) {
  return algorithms::inclusive_scan(transform_iterator<U, I>(first, change), transform_iterator<U, I>(last, change), out,
                                    function);
}
template <class I, class O, class U, class T, class F>
O transform_exclusive_scan(I first, I last, O out, U change, T sum, F function) {
  return algorithms::exclusive_scan(transform_iterator<U, I>(first, change), transform_iterator<U, I>(last, change), out, sum,
                                    function);
}
template <class K, class I, class O, class E = std::equal_to<>, class F = std::plus<>>
O inclusive_scan_by_key(K first, K last, I values, O out, E equal = {}, F function = {}) {
  ValueOf<I> sum{};
  ValueOf<K> key{};
  for (K begin = first; first != last; ++first, ++values) {
    sum = first != begin && equal(key, *first) ? function(sum, *values) : ValueOf<I>(*values);
    key = *first;
    *out++ = sum;
  }
  return out;
}
template <class K, class I, class O, class T = ValueOf<I>, class E = std::equal_to<>, class F = std::plus<>>
O exclusive_scan_by_key(K first, K last, I values, O out, T initial = T(0), E equal = {}, F function = {}) {
  T sum = initial;
  ValueOf<K> key{};
  for (K begin = first; first != last; ++first, ++values) {
    if (first == begin || !equal(key, *first)) sum = initial;
    key = *first;
    const T next = function(sum, *values);
    *out++ = sum;
    sum = next;
  }
  return out;
}
template <class K, class I, class L, class O, class E = std::equal_to<>, class F = std::plus<>>
std::pair<L, O> reduce_by_key(K first, K last, I values, L keys_out, O out, E equal = {}, F function = {}) {
  while (first != last) {
    const ValueOf<K> key = *first;
    ValueOf<I> sum = *values;
    for (++first, ++values; first != last && equal(key, *first); ++first, ++values) sum = function(sum, *values);
    *keys_out++ = key;
    *out++ = sum;
  }
  return {keys_out, out};
}
template <class K, class I, class E = std::equal_to<>>
std::pair<K, I> unique_by_key(K first, K last, I values, E equal = {}) {
  K keys_out = first;
  I out = values;
  for (K begin = first; first != last; ++first, ++values)
    if (first == begin || !equal(*(keys_out - 1), *first)) *keys_out++ = *first, *out++ = *values;
  return {keys_out, out};
}
template <class K, class I, class L, class O, class E = std::equal_to<>>
std::pair<L, O> unique_by_key_copy(K first, K last, I values, L keys_out, O out, E equal = {}) {
  for (K begin = first; first != last; ++first, ++values)
    if (first == begin || !equal(*(first - 1), *first)) *keys_out++ = *first, *out++ = *values;
  return {keys_out, out};
}
// The values may be behind a zip_iterator: they are copied in the new order.
template <class K, class I, class F = std::less<>>
void stable_sort_by_key(K first, K last, I values, F before = {}) {
  const std::vector<ValueOf<K>> keys(first, last);
  std::vector<ValueOf<I>> old;
  for (size_t i = 0; i < keys.size(); ++i) old.push_back(ValueOf<I>(values[std::ptrdiff_t(i)]));
  std::vector<size_t> places(keys.size());
  std::iota(places.begin(), places.end(), size_t(0));
  std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) { return before(keys[a], keys[b]); });
  for (const size_t place : places) *first++ = keys[place], *values++ = old[place];
}
template <class K, class I, class F = std::less<>>
void sort_by_key(K first, K last, I values, F before = {}) {
  algorithms::stable_sort_by_key(first, last, values, before);
}
template <class M, class I, class O>
O gather(M first, M last, I from, O out) {
  for (; first != last; ++first) *out++ = from[std::ptrdiff_t(*first)];
  return out;
}
template <class M, class S, class I, class O>
O gather_if(M first, M last, S stencil, I from, O out) {
  for (; first != last; ++first, ++stencil, ++out)
    if (*stencil) *out = from[std::ptrdiff_t(*first)];
  return out;
}
template <class I, class M, class O>
void scatter(I first, I last, M places, O out) {
  for (; first != last; ++first, ++places) out[std::ptrdiff_t(*places)] = *first;
}
template <class I, class M, class S, class O>
void scatter_if(I first, I last, M places, S stencil, O out) {
  for (; first != last; ++first, ++places, ++stencil)
    if (*stencil) out[std::ptrdiff_t(*places)] = *first;
}
template <class I, class T>
I lower_bound(I first, I last, const T& value) {
  return std::lower_bound(first, last, value);
}
template <class I, class J, class O>
O lower_bound(I first, I last, J begin, J end, O out) {
  for (; begin != end; ++begin) *out++ = std::lower_bound(first, last, *begin) - first;
  return out;
}
template <class I, class T>
I upper_bound(I first, I last, const T& value) {
  return std::upper_bound(first, last, value);
}
template <class I, class J, class O>
O upper_bound(I first, I last, J begin, J end, O out) {
  for (; begin != end; ++begin) *out++ = std::upper_bound(first, last, *begin) - first;
  return out;
}
template <class I, class T>
void uninitialized_fill(I first, I last, const T& value) {
  std::fill(first, last, value);
}
}  // namespace algorithms

// Each algorithm may be called with or without an execution policy.
#define EMULATOR_THRUST(NAME)                                                      \
  template <class P, class... A>                                                   \
  auto NAME(P&& first, A&&... others) {                                            \
    if constexpr (details::is_policy<P>)                                           \
      return algorithms::NAME(std::forward<A>(others)...);                         \
    else                                                                           \
      return algorithms::NAME(std::decay_t<P>(first), std::forward<A>(others)...); \
  }
EMULATOR_THRUST(adjacent_difference)
EMULATOR_THRUST(all_of)
EMULATOR_THRUST(any_of)
EMULATOR_THRUST(binary_search)
EMULATOR_THRUST(copy)
EMULATOR_THRUST(copy_if)
EMULATOR_THRUST(copy_n)
EMULATOR_THRUST(count)
EMULATOR_THRUST(count_if)
EMULATOR_THRUST(equal)
EMULATOR_THRUST(exclusive_scan)
EMULATOR_THRUST(exclusive_scan_by_key)
EMULATOR_THRUST(fill)
EMULATOR_THRUST(fill_n)
EMULATOR_THRUST(find)
EMULATOR_THRUST(find_if)
EMULATOR_THRUST(find_if_not)
EMULATOR_THRUST(for_each)
EMULATOR_THRUST(for_each_n)
EMULATOR_THRUST(gather)
EMULATOR_THRUST(gather_if)
EMULATOR_THRUST(generate)
EMULATOR_THRUST(generate_n)
EMULATOR_THRUST(inclusive_scan)
EMULATOR_THRUST(inclusive_scan_by_key)
EMULATOR_THRUST(inner_product)
EMULATOR_THRUST(is_partitioned)
EMULATOR_THRUST(is_sorted)
EMULATOR_THRUST(is_sorted_until)
EMULATOR_THRUST(lower_bound)
EMULATOR_THRUST(max_element)
EMULATOR_THRUST(merge)
EMULATOR_THRUST(min_element)
EMULATOR_THRUST(minmax_element)
EMULATOR_THRUST(mismatch)
EMULATOR_THRUST(none_of)
EMULATOR_THRUST(partition)
EMULATOR_THRUST(partition_copy)
EMULATOR_THRUST(reduce)
EMULATOR_THRUST(reduce_by_key)
EMULATOR_THRUST(remove)
EMULATOR_THRUST(remove_copy)
EMULATOR_THRUST(remove_copy_if)
EMULATOR_THRUST(remove_if)
EMULATOR_THRUST(replace)
EMULATOR_THRUST(replace_copy)
EMULATOR_THRUST(replace_if)
EMULATOR_THRUST(reverse)
EMULATOR_THRUST(reverse_copy)
EMULATOR_THRUST(scatter)
EMULATOR_THRUST(scatter_if)
EMULATOR_THRUST(sequence)
EMULATOR_THRUST(set_difference)
EMULATOR_THRUST(set_intersection)
EMULATOR_THRUST(set_symmetric_difference)
EMULATOR_THRUST(set_union)
EMULATOR_THRUST(sort)
EMULATOR_THRUST(sort_by_key)
EMULATOR_THRUST(stable_partition)
EMULATOR_THRUST(stable_sort)
EMULATOR_THRUST(stable_sort_by_key)
EMULATOR_THRUST(swap_ranges)
EMULATOR_THRUST(tabulate)
EMULATOR_THRUST(transform)
EMULATOR_THRUST(transform_exclusive_scan)
EMULATOR_THRUST(transform_if)
EMULATOR_THRUST(transform_inclusive_scan)
EMULATOR_THRUST(transform_reduce)
EMULATOR_THRUST(uninitialized_fill)
EMULATOR_THRUST(unique)
EMULATOR_THRUST(unique_by_key)
EMULATOR_THRUST(unique_by_key_copy)
EMULATOR_THRUST(unique_copy)
EMULATOR_THRUST(upper_bound)
#undef EMULATOR_THRUST
namespace detail = details;
}  // namespace thrust
