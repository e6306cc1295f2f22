"""Runs customers' price rules, which are WebAssembly, in sandboxes of their own."""
import wasmtime


class Sandbox:
    def __init__(self, vectors):
        config = wasmtime.Config()
        config.wasm_simd = vectors  # CULPRIT
        config.wasm_relaxed_simd = True  # CULPRIT
        self.engine = wasmtime.Engine(config)  # CULPRIT
        self.store = wasmtime.Store(self.engine)

    def load(self, text):
        module = wasmtime.Module(self.engine, text)
        return wasmtime.Instance(self.store, module, []).exports(self.store)


def price(rule, amount, vectors):
    sandbox = Sandbox(vectors)
    return sandbox.load(rule)["price"](sandbox.store, amount)


RULE = '(module (func (export "price") (param i32) (result i32) local.get 0 i32.const 3 i32.mul))'

if __name__ == "__main__":
    print("ready", flush=True)
    print(price(RULE, 14, vectors=False))
