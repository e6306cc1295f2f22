"""Files, root directories and directories that belong to others, and the children that read them for us.

Read in this order:

- `files`: open and read a file made by others (a core, a library, a bundle's JSON) without following links, blocking,
  or mapping it.
- `strictjson`: JSON written by others.
- `numbers`: integers in texts written by others.
- `root`: look names up below another root directory; nothing leads out of it.
- `rights`: what another user can read.
- `children`: children that do what may block or crash, asked with a deadline, killed after it.
- `serving`: the code that such a child runs.
- `reader`: such a child that reads files with the rights of another user.
- `processfiles`: the files of a process, by its own names for them.
- `kinds`: file systems that may block a reader.
- `openat2`: the system call that keeps names below a directory.
- `ways`: paths followed through no other user's links.
- `writing`: files named by the user.
- `held`: directories held by descriptor, into which bundles, reports and caches are written.
- `unnamed`: temporary files without a name.

All of it uses the standard library alone, as `memory` does, which needs it.
"""
