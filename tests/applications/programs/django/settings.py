DEBUG = True
SECRET_KEY = "none"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "views"
USE_TZ = True
