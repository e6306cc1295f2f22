"""Greenlets, and the libraries whose hubs switch between them: gevent, eventlet.

Read ``saved`` first (what greenlet keeps of a suspended greenlet), then ``switching`` (hubs and greenlets as loops and
tasks), ``links`` (what a suspended greenlet waits for), ``structs`` (gevent's compiled classes) and ``bridges``
(SQLAlchemy's asyncio bridge).
"""
