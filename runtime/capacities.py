"""How long arrays are at first that grow where they are full, and the numbers from which on something is worth while.

They stand in one place, read whenever an array is made, so that tests can set all of them to a few (tests/small.py):
then every array grows in every test. What is found by hash has a power of two.
"""

from __future__ import annotations

# Of the compact set.
NODES = 1 << 16
SPARE_NODES = 1 << 12  # an arena grows that, once compacted, is half full but for so many nodes
FEW_NODES = 1 << 10  # that an arena has room for which goes into a file
ROOTS = 1 << 15
WALK = 1 << 8  # branches that are still to be taken
PICK_STACK = 1 << 12
CHUNK_MATCHES = 1 << 14  # that are listed at a time …
CHUNK_EVENTS = 1 << 17  # … with so many events in all
EVENTS_OF_A_ROOT = 1 << 6  # that the first chunk has room for
CHAINS = 1 << 12  # that matches begin with
CELLS = 1 << 14  # of values, where matches are summed up …
GROUPS = 1 << 10  # … and of their groups; power of two

# Of the tables of deterministic states: what is known of the automaton, then what lives.
STATES = 1 << 3
CLASSES = 1 << 3
ROWS = 1 << 4
EDGES = 1 << 4
CODES = 1 << 4  # power of two
LIVE_ENTRIES = 1 << 6
RECORDS = 1 << 10  # of starts, for AFTER MATCH SKIP PAST LAST ROW
PIECE = 1 << 9  # events after which runs are looked through, where some make others superfluous …
FEW_RUNS = 1 << 6  # … if there are so many

# Of runs that hold values; each a power of two.
ENTRIES = 1 << 8
FEW_ENTRIES = 1 << 10  # up to here a table that is full grows: to look for what has left the window so often costs more
PENDING = 1 << 8
ORDERED = 1 << 10
HAPPENED = 1 << 8
STARTS = 1 << 8  # records, as above

GROUP = 1 << 5  # items of an ordered index that are looked through, rather than sorted by a second value; power of two
MOST_FOR_GROUPS = 1 << 24  # nodes of an arena that is large so that groups need not be made often

# Of runs side by side, of those that catch up, and of the general stepper.
PLACES = 1 << 12  # power of two
VALUES = 1 << 10  # power of two
BLOCKS = 1 << 10
KEYS = 1 << 10  # nodes of a tree of them
SLOTS = 1 << 3
WINDOW_EVENTS = 1 << 10  # of a window of which the greatest match is wanted
MANY_MOVES = 1 << 8  # that wait to be done
FEW_CLOCKS = 1 << 12  # that are kept without asking whether they are used
KNOWN_ROWS = 1 << 13  # that may be kept, beside one for each live state

# Of selectors, and of the second pass.
HELD_STARTS = 1 << 12  # with a match; more are looked through
MANY_ROOTS = 1 << 9  # of which those with an earlier end are left out at once
FEW_RIVALS = 1 << 6  # matches of one place that are not looked through yet
HELD_MATCHES = 1 << 12  # beside twice those that were left the last time they were looked at
FEW_ROWS = 1 << 16  # that are remembered without asking whether they may still be mentioned
CHUNK_STARTS = 1 << 14  # without a match, that are listed at a time

# Of what is read from files by the tasks.
FED_ROWS = 1 << 16  # that are fed at once
WEIGHTS = 1 << 14  # rows whose weights are kept before some are forgotten
