/* The claim protocol of one row between three machines (ARCHITECTURE.md, "Tasks: what is promised"; the specification's
 * "Activity / database row status"). Each `atomic` is one conditional UPDATE of the backend. Time is abstract: a lease is
 * fresh or stale; it turns stale when nobody alive holds it, or when a live run was silent for too long (a stall).
 *
 * A run is an agent at work for a claim. A machine can have two at once: one of a lease it has lost without noticing, and one of
 * a later claim of its own. Crashes, stalls and repeated reports are limited by budgets, so every execution ends; where it ends is judged
 * by the monitor. That there is no endless execution is verified apart (non-progress cycles).
 *
 * The app may set a claimed row to failed from outside (PATCH): that is the holder's failure, as if its agent had said so.
 * Leases turn stale by the clock of the host's boot, so a step of the wall clock is no event of this model.
 *
 * Broken variants, each of which must be found out: NO_BLAME (a failure from outside is noted of nobody), NO_FENCE (machine alone guards an update, not the attempt number), NO_OWNER (the
 * status alone guards), LOCKED_AT_ONLY (the table has no attempt number, as one that the hosted service's own set-up made: the machine and the
 * time of its claim guard an update), NO_ATTEMPTED (a machine that failed may claim again), NO_QUARANTINE, NO_SWEEP (stale leases are nobody's work).
 *
 * What LOCKED_AT_ONLY loses, and what it keeps: a heartbeat moves locked_at on, so a report is accepted when locked_at is not older than
 * the claim it belongs to. A claim of another machine changes locked_by and shuts the old run out, but after a later claim of the same machine its
 * old run passes too: the promise that only the newest attempt writes is lost. With KEPT_ONLY the assertions are those that stay true: only the machine that holds
 * the row writes, there is one terminal write, no task is stuck, three failed machines quarantine.
 */

#define MACHINES 3
#define RUNS 2
#define QUARANTINE_AFTER 3
#ifndef STALLS
#define STALLS 2
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef REPEATS
#define REPEATS 1
#endif
#ifndef RELEASES
#define RELEASES 1
#endif
#ifndef OUTSIDE
#define OUTSIDE 0
#endif

#define NOBODY 9
#define NONE 0

mtype = { pending, claimed, completed, failed, quarantined };

/* the row */
mtype status = pending;
byte holder = NOBODY;
byte attempt = 0;
bool is_stale = false;
byte attempted_by = 0;                          /* a bit a machine */
byte failures = 0;

#ifdef LOCKED_AT_ONLY
/* The database's clock in steps of which each claim and each heartbeat may or may not make one: two can have the same time. */
byte locked_at = 0;
byte since[32];                                 /* [attempt]: locked_at of its claim */
inline stamp()
{
    if
    :: locked_at = locked_at + 1
    :: true
    fi
}
inline stamp_claim() { stamp(); assert(attempt < 32); since[attempt] = locked_at }
#else
inline stamp() { skip }
inline stamp_claim() { skip }
#endif

/* the machines */
byte run_of[6];                                    /* [machine * RUNS + slot]: attempt number the agent works for */
bool is_up[MACHINES];
bool is_gone[MACHINES];                         /* crashed and never coming back */
bool has_reported[6];

/* what the world may still do to us */
byte stalls = STALLS, crashes = CRASHES, repeats = REPEATS, releases = RELEASES, outside = OUTSIDE;

/* what is asserted */
byte terminal_writes = 0;
byte writer = 0;                                /* attempt that wrote the terminal state */
byte blamed = 0;                                /* a bit a machine whose attempt failed, whatever the row says */

#define SLOT(m, s) ((m) * RUNS + (s))
#define IS_TRIED(m) ((attempted_by >> (m)) & 1)
#define IS_OVER (status == completed || status == quarantined)

#if defined(NO_OWNER)
#define HOLDS(m, a) (status == claimed)
#elif defined(LOCKED_AT_ONLY)
#define HOLDS(m, a) (status == claimed && holder == (m) && locked_at >= since[a])
#elif defined(NO_FENCE)
#define HOLDS(m, a) (status == claimed && holder == (m))
#else
#define HOLDS(m, a) (status == claimed && holder == (m) && attempt == (a))
#endif

#ifdef KEPT_ONLY
#define IS_OWN(m, i) (holder == (m))
#define IS_BY_NEWEST true
#else
#define IS_OWN(m, i) (run_of[i] == attempt && holder == (m))
#define IS_BY_NEWEST (writer == attempt)
#endif

#ifdef NO_ATTEMPTED
#define MAY_TRY(m) true
#else
#define MAY_TRY(m) (!IS_TRIED(m))
#endif

/* pending, failed, or a lease whose time is over */
#ifdef NO_SWEEP
#define IS_FREE (status == pending || status == failed)
#else
#define IS_FREE (status == pending || status == failed || (status == claimed && is_stale))
#endif

#define LIVE(i) (run_of[i] == attempt && !has_reported[i])
#define N_LIVE (LIVE(0) + LIVE(1) + LIVE(2) + LIVE(3) + LIVE(4) + LIVE(5))
#define HOLDER_RUNS (holder < MACHINES && is_up[holder] && (run_of[SLOT(holder, 0)] == attempt || run_of[SLOT(holder, 1)] == attempt))

inline end_run(i)
{
    run_of[i] = NONE;
    has_reported[i] = false;
}

inline unlock()
{
    holder = NOBODY;
    is_stale = false;
}

inline claim(m, i)
{
    assert(!IS_TRIED(m));                       /* a machine that failed does not try again */
    assert(((blamed >> (m)) & 1) == 0);
    assert(!IS_OVER);
    attempt = attempt + 1;
    status = claimed;
    holder = m;
    is_stale = false;
    run_of[i] = attempt;
    stamp_claim();
    assert(N_LIVE == 1);                        /* one live lease an attempt */
}

/* An agent's report reaches the row only through the lease. */
inline complete(m, i)
{
    if
    :: HOLDS(m, run_of[i]) ->
        assert(IS_OWN(m, i));       /* nobody without the lease writes */
        status = completed;
        unlock();
        terminal_writes = terminal_writes + 1;
        writer = run_of[i]
    :: else
    fi
}

inline end_as_failed()
{
    unlock();
#ifdef NO_QUARANTINE
    status = failed
#else
    if
    :: failures >= QUARANTINE_AFTER -> status = quarantined; terminal_writes = terminal_writes + 1; writer = attempt
    :: else -> status = failed
    fi
#endif
}

inline fail(m, i)
{
    if
    :: HOLDS(m, run_of[i]) ->
        assert(IS_OWN(m, i));
        attempted_by = attempted_by | (1 << m);
        blamed = blamed | (1 << m);
        failures = failures + 1;
        end_as_failed()
    :: else
    fi
}

/* The app says that the row has failed; the attempt number stays. */
inline fail_from_outside()
{
    blamed = blamed | (1 << holder);
#ifndef NO_BLAME
    attempted_by = attempted_by | (1 << holder);
    failures = failures + 1;
#endif
    end_as_failed()
}

/* A run that has reported ends, or its agent says it all once more (also the opposite) first. */
inline after_report(i)
{
    if
    :: end_run(i)
    :: repeats > 0 -> repeats = repeats - 1; has_reported[i] = true
    fi
}

#define FREE_SLOT(m, s) (run_of[SLOT(m, s)] == NONE)
#define HAS_RUN(m, s) (run_of[SLOT(m, s)] != NONE)

inline act_of_run(m, i)
{
    if
    :: true -> complete(m, i); after_report(i)
    :: true -> fail(m, i); after_report(i)
    :: !HOLDS(m, run_of[i]) -> end_run(i)                          /* heartbeat: the lease is lost, the agent is stopped */
    :: is_up[m] && HOLDS(m, run_of[i]) && is_stale -> is_stale = false; stamp()         /* heartbeat after a stall, before anybody took the lease */
    :: is_up[m] && HOLDS(m, run_of[i]) && releases > 0 ->                      /* the service stops in peace */
        releases = releases - 1;
        status = pending;
        unlock();
        end_run(i)
    fi
}

proctype machine(byte me)
{
end_machine:
    do
    :: atomic { is_up[me] && IS_FREE && MAY_TRY(me) && FREE_SLOT(me, 0) -> claim(me, SLOT(me, 0)) }
    :: atomic { is_up[me] && IS_FREE && MAY_TRY(me) && !FREE_SLOT(me, 0) && FREE_SLOT(me, 1) -> claim(me, SLOT(me, 1)) }
    :: atomic { HAS_RUN(me, 0) -> act_of_run(me, SLOT(me, 0)) }
    :: atomic { HAS_RUN(me, 1) -> act_of_run(me, SLOT(me, 1)) }
#ifndef NO_SWEEP
    :: atomic { is_up[me] && status == claimed && is_stale -> status = pending; unlock() }
#endif
    :: atomic { is_up[me] && crashes > 0 ->
        crashes = crashes - 1;
        is_up[me] = false;
        if                                                      /* its agents die with it, or finish as orphans and report late */
        :: end_run(SLOT(me, 0)); end_run(SLOT(me, 1))
        :: HAS_RUN(me, 0) || HAS_RUN(me, 1)
        fi;
        if
        :: is_gone[me] = true
        :: true
        fi }
    :: atomic { !is_up[me] && !is_gone[me] ->
        is_up[me] = true;
        if                                                      /* start-up frees what it held itself, or leaves it to the sweep */
        :: status == claimed && holder == me -> status = pending; unlock()
        :: true
        fi }
    od
}

/* Time passes: a lease nobody alive works for turns stale; one somebody works for only by a stall. */
proctype clock()
{
end_clock:
    do
    :: atomic { status == claimed && !is_stale && !HOLDER_RUNS -> is_stale = true }
    :: atomic { status == claimed && !is_stale && HOLDER_RUNS && stalls > 0 -> stalls = stalls - 1; is_stale = true }
    od
}

proctype app()
{
end_app:
    do
    :: atomic { status == claimed && holder < MACHINES && outside > 0 -> outside = outside - 1; fail_from_outside() }
    od
}

/* Where nothing more can happen the work is done, or every machine left has had its try. */
proctype monitor()
{
    byte m = 0;
    bool is_one_left = false;
    timeout;
    do
    :: m < MACHINES ->
        is_one_left = is_one_left || (is_up[m] && !IS_TRIED(m));
        m = m + 1
    :: else -> break
    od;
    assert(IS_OVER || !is_one_left);                            /* no task is stuck */
    assert(failures < QUARANTINE_AFTER || status == quarantined || status == completed);    /* quarantine after three */
    assert(terminal_writes == (IS_OVER -> 1 : 0));              /* one terminal write */
    assert(!IS_OVER || IS_BY_NEWEST)                       /* by the newest attempt */
}

init
{
    byte m = 0;
    atomic {
        do
        :: m < MACHINES -> is_up[m] = true; run machine(m); m = m + 1
        :: else -> break
        od;
        run clock();
        run app();
        run monitor()
    }
}
