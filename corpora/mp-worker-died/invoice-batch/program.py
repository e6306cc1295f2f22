"""Signs invoices in two processes, with a library that ends the process when its licence is not valid."""
import multiprocessing
import os


class Signer:
    def __init__(self, licence):
        self.licence = licence

    def sign(self, invoice):
        if invoice % 7 == 6:
            os._exit(3)  # what the library does
        return "%s-%06d" % (self.licence, invoice)


SIGNER = None


def prepare(licence):
    global SIGNER
    SIGNER = Signer(licence)


def sign(invoice):
    return SIGNER.sign(invoice)


class Batch:
    def __init__(self, context, licence):
        self.pool = context.Pool(2, prepare, (licence,))
        self.signed = []

    def run(self, invoices):
        jobs = [self.pool.apply_async(sign, (invoice,)) for invoice in invoices]
        for job in jobs:
            self.signed.append(job.get())  # CULPRIT
        return self.signed


def main():
    batch = Batch(multiprocessing.get_context("spawn"), "LIC")
    batch.run(range(3))
    print("ready", flush=True)
    print(batch.run(range(3, 9)))


if __name__ == "__main__":
    main()
