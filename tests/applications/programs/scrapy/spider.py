import os
from pathlib import Path

import requests
import scrapy
from scrapy import signals
from scrapy.exceptions import DontCloseSpider
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

STATE = os.environ["STATE"]


class Pipeline:
    async def process_item(self, item):
        if STATE == "pipeline":
            stored = Deferred()
            Path(os.environ["READY"]).touch()
            await maybe_deferred_to_future(stored)  # HANG pipeline
        return item


class Pages(scrapy.Spider):
    name = "pages"
    start_urls = [os.environ["WEB_URL"]]
    custom_settings = {"ITEM_PIPELINES": {Pipeline: 100}, "TELNETCONSOLE_ENABLED": False}

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.wait, signals.spider_idle)
        return spider

    def wait(self):
        if STATE == "idle":
            Path(os.environ["READY"]).touch()
            raise DontCloseSpider

    def parse(self, response):
        if STATE == "fetch":
            Path(os.environ["READY"]).touch()
            requests.get(os.environ["SILENT_URL"])  # HANG fetch
        yield {"length": len(response.body)}
