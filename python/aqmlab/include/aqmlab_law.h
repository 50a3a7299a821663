/*
 * The binary interface of laws and disciplines, for whoever writes one, in any language. The header `aqmlab_law.h` is
 * made from crates/law/src/abi.rs by `make docs`. A law decides about packets; a discipline orders them too.
 *
 * What the two sides promise each other:
 * - The engine owns the state: one block for each queue, aligned to 16 bytes, zeroed, and filled in with the
 *   parameters before the first call. It calls one law at a time with one state; calls with other states may run
 *   beside it in other threads.
 * - What a law is told, its facts or its queue, stands at one address as long as its queue is there. It always has
 *   what the present call is about.
 * - A law keeps all it knows in its state, reads no clock, and draws by `chance` and `uniform` of its facts alone: the
 *   same calls then give the same answers.
 * - Times are whole nanoseconds from the start of the run. Sizes are those of IP packets.
 */

#ifndef AQMLAB_LAW_H
#define AQMLAB_LAW_H

#include <stdint.h>

/**
 * The version of this interface. The engine takes laws of this version and of no other.
 */
#define AQMLAB_LAW_VERSION 2

/**
 * Forward the packet as it is.
 */
#define AQMLAB_PASS 0

/**
 * Lose the packet.
 */
#define AQMLAB_DROP 1

/**
 * Mark the packet. Only where `may_mark`.
 */
#define AQMLAB_MARK 2

/**
 * Signal congestion as this packet can carry it: mark it where `may_mark`, else lose it.
 */
#define AQMLAB_SIGNAL 3

/**
 * Added to a verdict: the law drew this packet. It is the cause where no other is added.
 */
#define AQMLAB_EARLY 0

/**
 * Added to a verdict: the law is past the threshold above which it signals everything.
 */
#define AQMLAB_FORCED 16

/**
 * Added to `DROP`: congestion is too heavy to mark what could be marked.
 */
#define AQMLAB_OVERLOAD 32

/**
 * Cause of a discipline alone: the queue is full.
 */
#define AQMLAB_TAIL 8

/**
 * Added to a verdict n times: the law's own cause of number n in its table; the first is 1. A discipline gives n times
 * this as a cause. No other cause is added then.
 */
#define AQMLAB_OWN 256

/**
 * Answered by any call: the law cannot go on. The run then ends with the law's name.
 */
#define AQMLAB_FAILED -1

/**
 * Answered by `take` of a discipline: something is held back (see `later`).
 */
#define AQMLAB_LATER -2

/**
 * What is written for a parameter, and what the engine writes into its field.
 */
enum aqmlab_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * A number; `double`.
   */
  AQMLAB_KIND_NUMBER = 0,
  /**
   * A whole number from 0 to 2^53; `int64_t`.
   */
  AQMLAB_KIND_INTEGER = 1,
  /**
   * `true` or `false`; `int64_t` 1 or 0.
   */
  AQMLAB_KIND_FLAG = 2,
  /**
   * A time such as `5ms`; `int64_t`, in nanoseconds. Default and range are in nanoseconds.
   */
  AQMLAB_KIND_TIME = 3,
  /**
   * A frequency such as `170hz`; `double`.
   */
  AQMLAB_KIND_FREQUENCY = 4,
  /**
   * A rate such as `10mbit`; `int64_t`, in bits a second.
   */
  AQMLAB_KIND_RATE = 5,
  /**
   * A size such as `1500b`; `int64_t`, in bytes, at most 2^32 - 1.
   */
  AQMLAB_KIND_SIZE = 6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum aqmlab_kind aqmlab_kind;
#else
typedef uint32_t aqmlab_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A parameter of a law. Every discipline has `limit` and, where it marks, `ecn` besides.
 */
typedef struct aqmlab_param {
  /**
   * Its name in scenarios: small letters, digits and `_`.
   */
  const char *name;
  /**
   * What it does, in a sentence.
   */
  const char *doc;
  /**
   * Its unit, where `kind` has none; may be empty.
   */
  const char *unit;
  /**
   * One of the kinds.
   */
  uint32_t kind;
  /**
   * Where in the state the engine writes it, in bytes.
   */
  uint32_t offset;
  /**
   * The default. What the kind cannot hold is refused: a number below 0 for any kind but a number, part of a
   * nanosecond, of a bit a second or of a byte.
   */
  double default_value;
  /**
   * The smallest value; minus infinity for none. Only a number may have one below 0.
   */
  double low;
  /**
   * The largest value; infinite for none.
   */
  double high;
} aqmlab_param;

/**
 * Something that a law shows in time series. One may be called `probability`, one `flows`, one anything else.
 */
typedef struct aqmlab_gauge {
  /**
   * Its name.
   */
  const char *name;
  /**
   * What it is, in a sentence.
   */
  const char *doc;
  /**
   * Its unit; may be empty.
   */
  const char *unit;
  /**
   * Where in the state it stands, in bytes.
   */
  uint32_t offset;
  /**
   * Whether it is an `int64_t` there and no `double`.
   */
  uint32_t is_integer;
} aqmlab_gauge;

/**
 * A cause of a law's own, why it loses or marks packets. Tables and reports show it under its name.
 */
typedef struct aqmlab_cause {
  /**
   * Its name: small letters, digits and `_`.
   */
  const char *name;
  /**
   * What it is, in a sentence.
   */
  const char *doc;
  /**
   * The cause as which it counts where causes are summed up: `EARLY`, `FORCED`, `OVERLOAD`; of a discipline also
   * `TAIL`.
   */
  int32_t kind;
} aqmlab_cause;

/**
 * What a law learns in a call. What has no meaning in the call is 0.
 */
typedef struct aqmlab_facts {
  /**
   * Now, in nanoseconds from the start of the run.
   */
  int64_t now_ns;
  /**
   * Size of the packet in bytes.
   */
  int64_t size;
  /**
   * ECN field of the packet: 0 not ECN-capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced.
   */
  int64_t ecn;
  /**
   * Whether the packet may be marked: it is ECN-capable, and `ecn` is set for this discipline.
   */
  int64_t may_mark;
  /**
   * Flow of the packet: 63 well-mixed bits that stand for its addresses and ports.
   */
  int64_t flow;
  /**
   * Host that an arriving packet comes from, by a number of its own; -1 where that is not known, and where none
   * arrives.
   */
  int64_t source;
  /**
   * Host that an arriving packet goes to; -1 likewise.
   */
  int64_t destination;
  /**
   * Packets that wait, without the one in hand and the one in transmission; in `prepare` too, where parameters have
   * changed.
   */
  int64_t backlog_packets;
  /**
   * The same in bytes.
   */
  int64_t backlog_bytes;
  /**
   * How long the packet waited, in `on_departure`.
   */
  int64_t sojourn_ns;
  /**
   * Rate of the link in bits a second.
   */
  double rate_bps;
  /**
   * True with this probability, from 0 to 1. The first argument is these facts.
   */
  int32_t (*chance)(const struct aqmlab_facts *facts, double probability);
  /**
   * A random number, uniform from 0 to 1 without 1.
   */
  double (*uniform)(const struct aqmlab_facts *facts);
  /**
   * The engine's own.
   */
  void *host;
} aqmlab_facts;

/**
 * A call of a law with its state and facts. Calls that decide answer a verdict, all others 0.
 */
typedef int32_t (*aqmlab_call)(void *state, const struct aqmlab_facts *facts);

/**
 * A law: what it is called, what it needs, and what it does. It has `on_arrival` or `on_departure`, which decide; any
 * other call may be null.
 */
typedef struct aqmlab_law {
  /**
   * The version of this interface that it was built for.
   */
  uint32_t version;
  /**
   * Size of the state.
   */
  uint32_t state_bytes;
  /**
   * Its name in scenarios: small letters, digits and `_`.
   */
  const char *name;
  /**
   * The idea in one sentence.
   */
  const char *doc;
  /**
   * Where it was published; may be empty.
   */
  const char *source;
  /**
   * The compiler and its flags, for the record; may be empty.
   */
  const char *built_with;
  /**
   * Year of publication.
   */
  uint32_t year;
  /**
   * Whether it marks ECN-capable packets where `ecn` is set.
   */
  uint32_t marks;
  /**
   * Its parameters.
   */
  const struct aqmlab_param *params;
  /**
   * How many there are.
   */
  uint32_t params_count;
  /**
   * How many gauges there are.
   */
  uint32_t gauges_count;
  /**
   * Its gauges.
   */
  const struct aqmlab_gauge *gauges;
  /**
   * Causes of its own.
   */
  const struct aqmlab_cause *causes;
  /**
   * Nanoseconds from one `tick` to the next; 0 for none, or for the time of `tick_param`.
   */
  int64_t tick_ns;
  /**
   * The parameter, a time or a frequency, that says how often `tick` is called; -1 for none.
   */
  int32_t tick_param;
  /**
   * Whether it wants to know between which hosts arriving packets go.
   */
  uint32_t wants_hosts;
  /**
   * How many causes of its own there are.
   */
  uint32_t causes_count;
  /**
   * Parameters are there, or have changed: computes what follows from them and from the link's rate.
   */
  aqmlab_call prepare;
  /**
   * Decides about an arriving packet. Not called for one that a full queue refuses.
   */
  aqmlab_call on_arrival;
  /**
   * A full queue has refused an arriving packet.
   */
  aqmlab_call on_overflow;
  /**
   * Decides about the packet at the head of the queue. After a loss the next one follows at once.
   */
  aqmlab_call on_departure;
  /**
   * The link asked for a packet, and none waits.
   */
  aqmlab_call on_idle;
  /**
   * The periodic work.
   */
  aqmlab_call tick;
} aqmlab_law;

/**
 * What a discipline learns in a call, and what it may do in it. Packets are handles: positive numbers that the engine
 * gives to packets as they arrive, later ones greater, none twice. The engine holds the packets.
 */
typedef struct aqmlab_queue {
  /**
   * What a law learns too; `size`, `ecn`, `may_mark`, `flow` and the hosts are those of the arriving packet. The
   * backlog is what is held, in `offer` without the arriving packet, and follows what the call loses.
   */
  struct aqmlab_facts facts;
  /**
   * The arriving packet, in `offer`.
   */
  int64_t handle;
  /**
   * Its Differentiated Services codepoint.
   */
  int64_t dscp;
  /**
   * The parameter `limit`, where it is in packets; `INT64_MAX` where it is not.
   */
  int64_t limit_packets;
  /**
   * The same in bytes.
   */
  int64_t limit_bytes;
  /**
   * Whether the arriving packet goes beyond the limit: it or others have to be lost before `offer` ends.
   */
  int64_t is_full;
  /**
   * Loses a packet that is held, for a cause; in `offer` and `take`. 0, or FAILED where it is not held.
   */
  int32_t (*drop)(const struct aqmlab_queue *queue, int64_t handle, int32_t cause);
  /**
   * Marks a packet that is held and may be marked, for a cause; as `drop`.
   */
  int32_t (*mark)(const struct aqmlab_queue *queue, int64_t handle, int32_t cause);
  /**
   * What `take` answers where what waits is held back for so many nanoseconds, at least 1. A packet that arrives
   * makes the link ask before.
   */
  int64_t (*later)(const struct aqmlab_queue *queue, int64_t ns);
} aqmlab_queue;

/**
 * A call of a discipline.
 */
typedef int64_t (*aqmlab_queue_call)(void *state, const struct aqmlab_queue *queue);

/**
 * A discipline: what it is called and what it needs, and what it does.
 */
typedef struct aqmlab_discipline {
  /**
   * Its version, name, state, parameters, gauges and causes, `prepare` and `tick`, as of a law. All other calls are
   * null.
   */
  struct aqmlab_law law;
  /**
   * A packet arrives. It is held unless it is lost in the call. Answers 0.
   */
  aqmlab_queue_call offer;
  /**
   * Which packet is sent: its handle; 0 if nothing waits; or what `later` answers.
   */
  aqmlab_queue_call take;
} aqmlab_discipline;

#endif  /* AQMLAB_LAW_H */

#ifdef __cplusplus
extern "C"
#endif
/** What the shared library of a law exports: the law, which lives as long as the library. */
const struct aqmlab_law *aqmlab_law_table(void);

#ifdef __cplusplus
extern "C"
#endif
/** What the shared library of a discipline exports in its place. */
const struct aqmlab_discipline *aqmlab_discipline_table(void);
