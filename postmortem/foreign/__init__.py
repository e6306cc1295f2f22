"""Everything that belongs to others: their files, their roots, their directories, and the children that touch them for us.

Read in this order:

- `files`: open and read a file that somebody else made (a core, a library, a bundle's JSON) without following it anywhere,
  without waiting for it, without mapping it.
- `strictjson`: JSON that somebody else wrote.
- `numbers`: whole numbers in texts that somebody else wrote.
- `root`: look names up below another root; nothing leads out of it.
- `rights`: what another user may read.
- `children`: children that do what may block or crash, asked and answered with a deadline, abandoned when it has passed.
- `serving`: what such a child runs.
- `reader`: such a child that reads files with the rights of another user.
- `kinds`: file systems that may keep a reader waiting.
- `openat2`: the system call that keeps names below a directory.
- `ways`: paths followed through nobody else's links.
- `writing`: files that the user has named.
- `held`: directories held by descriptor, into which bundles, reports and caches are written.
- `unnamed`: temporary files without a name.

All of it uses the standard library alone: `memory` needs it inside gdb's Python too.
"""
